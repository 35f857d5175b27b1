/**
 * A pooler in transaction mode, as PgBouncer has it: each transaction of a client runs on another connection to the
 * server, so no setting, prepared statement or LISTEN of a session stays. Without authentication or TLS.
 */
import { once } from "node:events";
import { type AddressInfo, createConnection, createServer, type Server, type Socket } from "node:net";

const TYPE_AND_LENGTH = 5;
const READY = "Z".charCodeAt(0);
const TERMINATE = "X".charCodeAt(0);
const IDLE = "I".charCodeAt(0);

/** Cuts a stream of messages, each with a type and a length. */
class Messages {
  #held = Buffer.alloc(0);

  *of(chunk: Buffer): Generator<Buffer, void> {
    this.#held = Buffer.concat([this.#held, chunk]);
    while (this.#held.length >= TYPE_AND_LENGTH) {
      const length = 1 + this.#held.readUInt32BE(1);
      if (this.#held.length < length) return;
      yield this.#held.subarray(0, length);
      this.#held = this.#held.subarray(length);
    }
  }
}

class Backend {
  readonly socket: Socket;
  readonly #messages = new Messages();
  /** The greeting of the server, up to the first `ReadyForQuery`. */
  readonly greeting: Buffer[] = [];
  client: Socket | undefined;
  readonly #free: (backend: Backend) => void;
  #isGreeted = false;

  constructor(target: AddressOf, startup: Buffer, free: (backend: Backend) => void) {
    this.#free = free;
    this.socket = createConnection({ ...target, noDelay: true });
    this.socket.write(startup);
    this.socket.on("data", (chunk: Buffer) => {
      for (const message of this.#messages.of(chunk)) this.#took(message);
    });
    this.socket.on("error", () => this.client?.destroy());
    this.socket.on("close", () => this.client?.destroy());
  }

  #took(message: Buffer): void {
    if (!this.#isGreeted) this.greeting.push(Buffer.from(message));
    else this.client?.write(message);
    if (message[0] !== READY || message[TYPE_AND_LENGTH] !== IDLE) return;
    this.#isGreeted = true;
    this.client = undefined;
    this.#free(this);
  }
}

interface AddressOf {
  readonly host: string;
  readonly port: number;
}

export class TransactionPooler implements AsyncDisposable {
  readonly #server: Server;
  readonly #target: AddressOf;
  readonly #backends: Backend[] = [];
  /** Free ones; the one that is free the longest comes first, so that a client changes its connection. */
  readonly #free: Backend[] = [];
  readonly #clients = new Set<Socket>();
  readonly #waiting: ((backend: Backend) => void)[] = [];
  readonly #size: number;
  /** Transactions that ran on another connection than the one before them of the same client. */
  moved = 0;

  static async start(url: string, size = 4): Promise<TransactionPooler> {
    const { hostname, port } = new URL(url);
    const pooler = new TransactionPooler({ host: hostname, port: Number(port) }, size);
    pooler.#server.listen(0, "127.0.0.1");
    await once(pooler.#server, "listening");
    return pooler;
  }

  private constructor(target: AddressOf, size: number) {
    this.#target = target;
    this.#size = size;
    this.#server = createServer({ noDelay: true }, (client) => this.#accept(client));
  }

  urlOf(url: string): string {
    const at = new URL(url);
    at.port = String((this.#server.address() as AddressInfo).port);
    return at.href;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.destroy();
    for (const { socket } of this.#backends) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }

  #accept(client: Socket): void {
    this.#clients.add(client);
    client.on("close", () => this.#clients.delete(client));
    client.on("error", () => client.destroy());
    client.once("data", (startup: Buffer) => {
      client.pause();
      while (this.#backends.length < this.#size)
        this.#backends.push(new Backend(this.#target, startup, (backend) => this.#freed(backend)));
      void this.#serve(client);
    });
  }

  async #serve(client: Socket): Promise<void> {
    const greeter = await this.#take();
    for (const message of greeter.greeting) client.write(message);
    this.#freed(greeter);
    const messages = new Messages();
    let backend: Backend | undefined;
    let last: Backend | undefined;
    client.on("data", async (chunk: Buffer) => {
      client.pause();
      for (const message of messages.of(chunk)) {
        if (message[0] === TERMINATE) {
          client.end();
          return;
        }
        if (backend === undefined || backend.client !== client) {
          backend = await this.#take();
          backend.client = client;
          if (last !== undefined && last !== backend) this.moved++;
          last = backend;
        }
        backend.socket.write(message);
      }
      client.resume();
    });
    client.on("close", () => {
      // Its transaction is rolled back with the connection, which is replaced by none.
      if (backend?.client === client) backend.socket.destroy();
    });
    client.resume();
  }

  async #take(): Promise<Backend> {
    const free = this.#free.shift();
    return free ?? new Promise<Backend>((resolve) => this.#waiting.push(resolve));
  }

  #freed(backend: Backend): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free.push(backend);
    else next(backend);
  }
}
