/**
 * A TCP proxy before the database, with faults: connections are cut before or after bytes are forwarded, delayed,
 * stalled (open, but no byte passes), or half open (bytes pass in one direction). Dropped bytes never arrive later:
 * their connection is cut when the proxy heals.
 */
import { createConnection, createServer, type Server, type Socket } from "node:net";

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
}

export class CuttingProxy {
  readonly #server: Server;
  readonly #target: { host: string; port: number };
  readonly #pairs = new Set<Pair>();
  /** The last chunk that waits for a socket. */
  readonly #last = new Map<Socket, Promise<void>>();
  port = 0;
  /** Whether new connections are refused. */
  isDown = false;
  /** No byte passes in either direction. */
  isStalled = false;
  /** Answers of the database are dropped, and the connection is cut: the request was forwarded. */
  dropsAnswers = false;
  /** Bytes of this direction are dropped: the connection is half open. */
  drops: "to-server" | "to-client" | undefined;
  /** Bytes wait so long, in their order. */
  delayMs = 0;
  /** Called for each chunk of a client; true cuts the connection before the chunk is forwarded. */
  cutsBefore: ((chunk: Buffer) => boolean) | undefined;

  private constructor(target: { host: string; port: number }) {
    this.#target = target;
    this.#server = createServer((client) => this.#accept(client));
  }

  static async start(url: string): Promise<CuttingProxy> {
    const { hostname, port } = new URL(url);
    const proxy = new CuttingProxy({ host: hostname, port: Number(port) });
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    const address = proxy.#server.address();
    proxy.port = typeof address === "object" && address !== null ? address.port : 0;
    return proxy;
  }

  /** The URL of the database through the proxy. */
  urlOf(url: string): string {
    const through = new URL(url);
    through.hostname = "127.0.0.1";
    through.port = String(this.port);
    return through.href;
  }

  /** Ends every fault. Connections that have lost bytes are cut. */
  heal(): void {
    const hasLost = this.isStalled || this.drops !== undefined;
    this.isDown = false;
    this.isStalled = false;
    this.dropsAnswers = false;
    this.drops = undefined;
    this.delayMs = 0;
    this.cutsBefore = undefined;
    if (hasLost) this.cut();
  }

  /** Cuts every connection. */
  cut(): void {
    for (const pair of this.#pairs) this.#end(pair);
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #accept(client: Socket): void {
    if (this.isDown) {
      client.destroy();
      return;
    }
    const pair: Pair = { client, server: createConnection(this.#target) };
    this.#pairs.add(pair);
    for (const socket of [pair.client, pair.server]) {
      socket.on("error", () => this.#end(pair));
      socket.on("close", () => this.#end(pair));
    }
    client.on("data", (chunk: Buffer) => {
      if (this.isStalled || this.drops === "to-server") return;
      if (this.cutsBefore?.(chunk) === true) this.#end(pair);
      else this.#pass(pair.server, chunk);
    });
    pair.server.on("data", (chunk: Buffer) => {
      if (this.isStalled || this.drops === "to-client") return;
      if (this.dropsAnswers) this.#end(pair);
      else this.#pass(client, chunk);
    });
  }

  /** Chunks wait in a row, so that a shorter delay does not overtake. */
  #pass(to: Socket, chunk: Buffer): void {
    const before = this.#last.get(to) ?? Promise.resolve();
    const waits = this.delayMs;
    if (waits === 0 && !this.#last.has(to)) {
      to.write(chunk);
      return;
    }
    const passed = before.then(async () => {
      if (waits > 0) await new Promise<void>((resolve) => setTimeout(resolve, waits));
      if (!to.destroyed) to.write(chunk);
      if (this.#last.get(to) === passed) this.#last.delete(to);
    });
    this.#last.set(to, passed);
  }

  #end(pair: Pair): void {
    if (!this.#pairs.delete(pair)) return;
    pair.client.destroy();
    pair.server.destroy();
  }
}
