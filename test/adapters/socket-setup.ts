/** Real sockets for tests: a loop behind one, and raw clients that say and hear bytes. */
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { UnixSocket, type UnixSocketOptions } from "../../src/adapters/unix-socket.ts";
import type { Host } from "../../src/host/host.ts";
import { systemHost } from "../../src/host/system-host.ts";
import type { Capability } from "../../src/loop/capability.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { EventLoop, type EventLoopOptions } from "../../src/loop/event-loop.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { Json } from "../../src/message/json.ts";

export function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), "mr-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Answers with the given data. */
export const echo: Capability = capability({
  description: "answers its data",
  queries: { "Syscall.Ping": { handle: (data: Json) => data } },
});

/** Answers when the test says so. */
export function held() {
  const waiting: ((data: Json) => void)[] = [];
  const asked = signal();
  const held = capability({
    description: "waits",
    queries: {
      "Held.Ask": {
        handle: () => {
          const answered = new Promise<Json>((resolve) => waiting.push(resolve));
          asked.raise();
          return answered;
        },
      },
    },
  });
  const answer = async (data: Json = null) => {
    await asked.until(() => waiting.length > 0);
    waiting.shift()?.(data);
  };
  return { held, answer };
}

export interface Served {
  readonly loop: EventLoop;
  readonly socket: UnixSocket;
  readonly path: string;
  readonly observed: Message[];
  /** Resolves when so many of a type were observed. */
  seen(type: string, count?: number): Promise<void>;
  connect(options?: { reading?: boolean }): Promise<RawClient>;
}

export async function serve(
  capabilities: Readonly<Record<string, Capability>> = { echo },
  options: Partial<UnixSocketOptions> & Partial<EventLoopOptions> = {},
): Promise<Served> {
  const host = options.host ?? systemHost();
  const path = options.path ?? join(scratch(), "run", "kernel.sock");
  const observed: Message[] = [];
  const noted = signal();
  const observe = (observation: Message) => {
    observed.push(observation);
    noted.raise();
  };
  const loop = await EventLoop.boot({ observe, ...options, host, capabilities });
  const socket = await UnixSocket.open({ ...options, host, loop, path });
  onTestFinished(async () => {
    await socket.close(0);
    await loop.stop();
  });
  return {
    ...{ loop, socket, path, observed },
    seen: (type, count = 1) => noted.until(() => observed.filter((one) => one.type === type).length >= count),
    connect: async ({ reading = true } = {}) => {
      const client = await RawClient.connect(path);
      if (!reading) client.socket.pause();
      onTestFinished(() => void client.socket.destroy());
      return client;
    },
  };
}

export class RawClient {
  readonly socket: Socket;
  readonly messages: Message[] = [];
  ended = false;
  closed = false;
  #rest = "";
  readonly #changed = signal();

  static connect(path: string): Promise<RawClient> {
    return new Promise((resolve, reject) => {
      const socket = connect({ path, allowHalfOpen: true });
      socket.once("error", reject);
      socket.once("connect", () => resolve(new RawClient(socket)));
    });
  }

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding("utf8");
    socket.on("data", (text) => this.#hear(text as unknown as string));
    socket.on("end", () => {
      this.ended = true;
      this.#changed.raise();
    });
    socket.on("close", () => {
      this.closed = true;
      this.#changed.raise();
    });
    // Some tests cut the connection at the server.
    socket.on("error", () => undefined);
  }

  #hear(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.messages.push(JSON.parse(line) as Message);
    this.#changed.raise();
  }

  say(...lines: (string | Uint8Array | Message)[]): void {
    for (const line of lines) {
      if (line instanceof Uint8Array) this.socket.write(line);
      else this.socket.write(`${typeof line === "string" ? line : JSON.stringify(line)}\n`);
    }
  }

  /** The first so many messages, when they are here. */
  async hears(count: number): Promise<Message[]> {
    await this.#changed.until(() => this.messages.length >= count || this.ended || this.closed);
    return this.messages.slice(0, count);
  }

  async end(): Promise<void> {
    await this.#changed.until(() => this.ended || this.closed);
  }
}

export function ping(id: string, data: Json = null, metadata: object = {}): Message {
  return { kind: "query", type: "Syscall.Ping", data, metadata: { id, timestamp: 1, ...metadata } };
}

/** `kind causation code-or-data`, short enough to compare. */
export function short({ kind, data, metadata }: Message): string {
  const what = kind === "error" ? (data as unknown as { code: number }).code : JSON.stringify(data);
  return `${kind} ${metadata.causation ?? "-"} ${what}`;
}

/** The real host, with a monotonic clock that only the test moves. */
export function steppingHost(): Host & { pass(ms: number): void } {
  const real = systemHost();
  let passed = 0;
  return {
    now: () => real.now(),
    monotonic: () => passed,
    timer: (delayMs, fire, options) => real.timer(delayMs, fire, options),
    task: (run) => real.task(run),
    yield: () => real.yield(),
    microtask: (run) => real.microtask(run),
    report: (error, what) => real.report(error, what),
    id: (nowMs) => real.id(nowMs),
    random: () => real.random(),
    randomBytes: (length) => real.randomBytes(length),
    pass: (ms) => {
      passed += ms;
    },
  };
}

/** A changing value, and the callers that wait for it. */
export function signal() {
  let waiting: (() => void)[] = [];
  return {
    raise: () => {
      const woken = waiting;
      waiting = [];
      for (const wake of woken) wake();
    },
    until: async (condition: () => boolean) => {
      while (!condition()) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}
