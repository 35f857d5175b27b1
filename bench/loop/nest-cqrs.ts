/** The query bus of @nestjs/cqrs: request and answer of a Nest user, inside one process. */
import { loadPeer } from "../bus/peer-queue.ts";
import { whyPeerMissing } from "../harness/peers.ts";
import type { InProcess } from "./in-process.ts";

/** As far as it is used here; decorators are called as the functions they are. */
type Decorator = (target: object) => void;
interface Core {
  readonly NestFactory: { createApplicationContext(module: object, options: object): Promise<Application> };
}
interface Application {
  get(token: object): { execute(query: object): Promise<unknown> };
  close(): Promise<void>;
}
interface Common {
  Module(options: object): Decorator;
}
interface Cqrs {
  readonly CqrsModule: { forRoot(): object };
  readonly QueryBus: object;
  QueryHandler(query: object): Decorator;
}

class Say {
  readonly index: number;

  constructor(index: number) {
    this.index = index;
  }
}

class SayHandler {
  async execute({ index }: Say): Promise<{ index: number }> {
    return { index };
  }
}

class Bench {}

export const nestCqrs: InProcess = {
  name: "@nestjs/cqrs",
  unavailable: async () => whyPeerMissing("@nestjs/cqrs") ?? whyPeerMissing("@nestjs/core"),
  open: async () => {
    await loadPeer("reflect-metadata");
    const { NestFactory } = await loadPeer<Core>("@nestjs/core");
    const { Module } = await loadPeer<Common>("@nestjs/common");
    const { CqrsModule, QueryBus, QueryHandler } = await loadPeer<Cqrs>("@nestjs/cqrs");
    QueryHandler(Say)(SayHandler);
    Module({ imports: [CqrsModule.forRoot()], providers: [SayHandler] })(Bench);
    const application = await NestFactory.createApplicationContext(Bench, { logger: false });
    const bus = application.get(QueryBus);
    return {
      ask: (index) => bus.execute(new Say(index)),
      [Symbol.asyncDispose]: () => application.close(),
    };
  },
};
