/**
 * Moleculer: brokers that call each other's actions, in one process or over its TCP transporter. It validates no
 * message and keeps none.
 */
import { createServer } from "node:net";
import { loadPeer } from "../bus/peer-queue.ts";
import { whyPeerMissing } from "../harness/peers.ts";
import type { InProcess } from "./in-process.ts";

/** As far as it is used here. */
interface Moleculer {
  readonly ServiceBroker: new (options: object) => Broker;
}

export interface Broker {
  createService(schema: object): unknown;
  start(): Promise<void>;
  stop(): Promise<void>;
  call(action: string, params: object): Promise<unknown>;
  waitForServices(name: string): Promise<unknown>;
}

const ECHO = { name: "echo", actions: { say: ({ params }: { params: object }) => params } };

export const moleculer: InProcess = {
  name: "moleculer",
  unavailable: async () => whyPeerMissing("moleculer"),
  open: async () => {
    const { ServiceBroker } = await loadPeer<Moleculer>("moleculer");
    const broker = new ServiceBroker({ logger: false });
    broker.createService(ECHO);
    await broker.start();
    return { ask: (index) => broker.call("echo.say", { index }), [Symbol.asyncDispose]: () => broker.stop() };
  },
};

/** One end of two brokers that know each other's addresses; the server's has the service. */
export async function startBroker(end: "server" | "client", ports: readonly [number, number]): Promise<Broker> {
  const { ServiceBroker } = await loadPeer<Moleculer>("moleculer");
  const [server, client] = ports;
  const broker = new ServiceBroker({
    logger: false,
    nodeID: end,
    transporter: {
      type: "TCP",
      options: {
        udpDiscovery: false,
        port: end === "server" ? server : client,
        urls: [`127.0.0.1:${server}/server`, `127.0.0.1:${client}/client`],
        gossipPeriod: 1,
      },
    },
  });
  if (end === "server") broker.createService(ECHO);
  await broker.start();
  return broker;
}

export async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
