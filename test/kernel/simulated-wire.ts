/**
 * A client and its connection to a kernel, without a network: lines arrive late, in pieces cut anywhere, and stop when
 * the wire is cut. The client repeats unanswered requests under the same ids.
 */
import { type ByteStream, NdjsonConnection } from "../../src/adapters/ndjson-connection.ts";
import type { SimulatedHost } from "../../src/host/simulated-host.ts";
import type { SimulatedProcess } from "../../src/host/simulated-process.ts";
import type { EventLoop } from "../../src/loop/event-loop.ts";
import type { Message } from "../../src/message/envelope.ts";

const encoder = new TextEncoder();

/** One wire between a client and a living process; of no use after it was cut. */
class Wire implements ByteStream {
  readonly #world: SimulatedHost;
  readonly #process: SimulatedProcess;
  readonly #connection: NdjsonConnection;
  readonly #heard: (text: string) => void;
  /** When the last piece in each direction arrives; none overtakes another. */
  #inAtMs = 0;
  #outAtMs = 0;
  #cut = false;
  buffered = 0;

  constructor(world: SimulatedHost, process: SimulatedProcess, loop: EventLoop, heard: (text: string) => void) {
    this.#world = world;
    this.#process = process;
    this.#heard = heard;
    this.#connection = new NdjsonConnection({
      ...{ host: process, loop, stream: this, adapter: "wire" },
      closed: () => undefined,
    });
  }

  /** From the client, in pieces. */
  send(text: string): void {
    for (let bytes = encoder.encode(text); bytes.length > 0; ) {
      const length = 1 + Math.floor(this.#world.random() * 120);
      const piece = bytes.slice(0, length);
      bytes = bytes.slice(length);
      this.#inAtMs = this.#later(this.#inAtMs);
      this.#world.timer(this.#inAtMs - this.#world.monotonic(), () => {
        if (!this.#cut && this.#process.status === "running") this.#connection.data(piece);
      });
    }
  }

  write(text: string): void {
    this.buffered += text.length;
    this.#outAtMs = this.#later(this.#outAtMs);
    this.#world.timer(this.#outAtMs - this.#world.monotonic(), () => {
      this.buffered -= text.length;
      if (this.#cut) return;
      this.#heard(text);
      if (this.#process.status === "running") this.#connection.drained();
    });
  }

  #later(lastMs: number): number {
    const slow = this.#world.random() < 0.05 ? 40 : 3;
    return Math.max(lastMs, this.#world.monotonic()) + this.#world.random() * slow;
  }

  /** The connection is lost; the kernel hears of it if it lives. */
  cut(): void {
    if (this.#cut) return;
    this.#cut = true;
    if (this.#process.status === "running") this.#connection.lost();
  }

  end(): void {
    this.#cut = true;
  }

  pause(): void {}
  resume(): void {}
  probe(): void {}
}

/** A client that opens many event streams and sends no other request. Streams end with their wire. */
export class WireFlood {
  /** Streams that were accepted or refused, and events that came. */
  answers = 0;
  events = 0;
  readonly #world: SimulatedHost;
  readonly #type: string;
  #wire: Wire | undefined;
  #rest = "";
  #next = 0;

  /** Each fourth stream wants the events of `type`; the others match none. */
  constructor(world: SimulatedHost, type = "Entry.Added") {
    this.#world = world;
    this.#type = type;
  }

  get connected(): boolean {
    return this.#wire !== undefined;
  }

  connect(process: SimulatedProcess, loop: EventLoop): void {
    this.#rest = "";
    const wire = new Wire(this.#world, process, loop, (text) => {
      if (this.#wire === wire) this.#hear(text);
    });
    this.#wire = wire;
  }

  /** Opens streams that all read the journal from its start. */
  subscribe(count: number): void {
    for (let n = 0; n < count; n++) {
      const filter = n % 4 === 0 ? { types: [this.#type] } : { topics: [`no.such.${n}.*`] };
      const metadata = { id: `flood${++this.#next}`, timestamp: 1 };
      this.#wire?.send(
        `${JSON.stringify({ kind: "command", type: "Sys.Subscribe", data: { from: "start", ...filter }, metadata })}\n`,
      );
    }
  }

  disconnect(): void {
    this.#wire?.cut();
    this.#wire = undefined;
  }

  #hear(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      if ((JSON.parse(line) as Message).kind === "event") this.events++;
      else this.answers++;
    }
  }
}

export class WireClient {
  readonly name: string;
  /** Sent and not answered. */
  readonly open = new Map<string, Message>();
  readonly answers = new Map<string, Message>();
  resent = 0;
  readonly #world: SimulatedHost;
  #wire: Wire | undefined;
  #rest = "";

  constructor(world: SimulatedHost, name: string) {
    this.#world = world;
    this.name = name;
  }

  get connected(): boolean {
    return this.#wire !== undefined;
  }

  ask(request: Message): void {
    this.open.set(request.metadata.id, request);
    this.#send(request);
  }

  connect(process: SimulatedProcess, loop: EventLoop): void {
    this.#rest = "";
    const wire = new Wire(this.#world, process, loop, (text) => {
      if (this.#wire === wire) this.#hear(text);
    });
    this.#wire = wire;
    for (const request of this.open.values()) {
      this.resent++;
      this.#send(request);
    }
  }

  disconnect(): void {
    this.#wire?.cut();
    this.#wire = undefined;
  }

  #send(request: Message): void {
    this.#wire?.send(`${JSON.stringify(request)}\n`);
  }

  #hear(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#answered(JSON.parse(line) as Message);
  }

  #answered(answer: Message): void {
    const id = answer.metadata.causation ?? "";
    const request = this.open.get(id);
    if (!request)
      throw new Error(`${this.name} got an answer for ${id}, for which it does not wait: ${JSON.stringify(answer)}`);
    const code = answer.kind === "error" ? (answer.data as { code: number }).code : 0;
    // Not done, or unknown: it is sent again, under the same id.
    if (code === 503) {
      this.resent++;
      const wire = this.#wire;
      this.#world.timer(50, () => {
        // On a new wire it has been sent already.
        if (this.#wire === wire) this.#send(request);
      });
      return;
    }
    if (code !== 0) throw new Error(`${this.name}: ${id} failed: ${JSON.stringify(answer.data)}`);
    this.open.delete(id);
    this.answers.set(id, answer);
  }
}
