/**
 * One connection to a kernel's socket: lines out, messages in.
 */
import { connect, type Socket } from "node:net";
import type { Host } from "../host/host.ts";
import { Failure } from "../message/error-data.ts";
import type { ClientLink, LinkEvents, Source } from "./link.ts";

/** The kernel on a socket: `.millrace/kernel.sock`. Each link is a connection. */
export function socketSource(path: string, host: Host): Source {
  return {
    host,
    bytesOf: (text) => Buffer.byteLength(text),
    open: async (events, request) => {
      const link = await LineLink.open(path, host, events);
      if (request !== undefined) link.send(JSON.stringify(request));
      return link;
    },
  };
}

class LineLink implements ClientLink {
  readonly #socket: Socket;
  readonly #host: Host;
  #rest = "";
  /** A line was written in this task; later lines of the task are held and sent in one write. */
  #isHolding = false;
  #held = "";
  readonly #release = (): void => {
    this.#isHolding = false;
    if (this.#held !== "") this.#socket.write(this.#held);
    this.#held = "";
  };

  static open(path: string, host: Host, events: LinkEvents): Promise<LineLink> {
    return new Promise((resolve, reject) => {
      const socket = connect(path);
      const refused = (cause: Error & { readonly code?: string }) => {
        const why =
          cause.code === "EACCES"
            ? `this user may not use ${path}; it is its owner's alone`
            : `no kernel on ${path}; start one with: npm start, or millrace start app.ts`;
        reject(new Failure(503, why, { reason: "NOT_REACHABLE", cause }));
      };
      socket.once("error", refused);
      socket.once("connect", () => {
        socket.off("error", refused);
        resolve(new LineLink(socket, host, events));
      });
    });
  }

  private constructor(socket: Socket, host: Host, events: LinkEvents) {
    this.#socket = socket;
    this.#host = host;
    // Decodes across chunks: a character may be split.
    socket.setEncoding("utf8");
    socket.on("data", (chunk) => this.#read(String(chunk), events));
    // After a reset, `close` follows.
    socket.on("error", () => socket.destroy());
    socket.on("close", () => events.lost());
  }

  /**
   * The first line of a task is sent at once, for the latency of a single request; one write per line would be the main
   * cost of many.
   */
  send(line: string): void {
    if (this.#isHolding) {
      this.#held += `${line}\n`;
      return;
    }
    this.#isHolding = true;
    this.#socket.write(`${line}\n`);
    this.#host.task(this.#release);
  }

  /** Stops reading until `resume`. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  end(): void {
    this.#socket.destroy();
  }

  #read(chunk: string, events: LinkEvents): void {
    const lines = (this.#rest + chunk).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) if (line !== "") events.message(JSON.parse(line));
  }
}
