/**
 * One request to the loop: a connection that lives until its answer. SPEC: W20.
 */
import type { EventLoop } from "../loop/event-loop.ts";
import type { Connection } from "../loop/pending-request.ts";
import type { Message } from "../message/envelope.ts";
import type { Principal } from "./principal.ts";

export class HttpExchange implements Connection {
  readonly id: string;
  readonly adapter = "http";
  readonly principal: string;
  readonly clearance?: readonly string[];
  readonly hasRoom = true;
  readonly answer: Promise<Message>;
  /** Whether it has the answer. */
  isOver = false;
  /** When the handler began, on the monotonic clock, if its actor tells. */
  begunAt: number | undefined;
  #resolve!: (answer: Message) => void;

  constructor(id: string, { name, clearance }: Principal) {
    this.id = id;
    this.principal = name;
    if (clearance !== undefined) this.clearance = clearance;
    this.answer = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  deliver(answer: Message, begunAt?: number): void {
    this.isOver = true;
    this.begunAt = begunAt;
    this.#resolve(answer);
  }

  /** An answer outside of a request: the message was refused before it became one. */
  stream(message: Message): void {
    if (!this.isOver && message.kind === "error") this.deliver(message);
  }

  whenRoom(): Promise<void> {
    return Promise.resolve();
  }

  /** Ends a request whose client has left. The handler goes on. */
  leave(loop: EventLoop): void {
    if (!this.isOver) loop.disconnect(this);
  }
}
