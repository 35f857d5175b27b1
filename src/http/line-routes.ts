/**
 * `POST /v1/messages`: lines of messages in, lines of answers out, by the rules of the socket. SPEC: W20, N.
 */
import type { Hono } from "hono";
import { type ByteStream, NdjsonConnection } from "../adapters/ndjson-connection.ts";
import { HTTP_STREAMS_MAX } from "../limits.ts";
import { Failure } from "../message/error-data.ts";
import { AnswerStream } from "./answer-stream.ts";
import type { HttpContext, HttpEnv, HttpParts, OpenStream } from "./http-context.ts";
import { scopedMessage } from "./message-scope.ts";

export function addLineRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  app.post("/v1/messages", (context) => messages(parts, context));
}

function messages({ host, kernel, streams, isDraining }: HttpParts, context: HttpContext): Response {
  if (isDraining) throw new Failure(503, "the kernel is shutting down", { reason: "DRAINING" });
  if (streams.size >= HTTP_STREAMS_MAX)
    throw new Failure(503, `this server has ${HTTP_STREAMS_MAX} streams, its limit; come back later`);
  const principal = context.get("principal");
  const out = new AnswerStream(() => {
    connection.lost();
    streams.delete(open);
  });
  const input = new PausableInput();
  const stream: ByteStream = {
    write: (text) => out.write(text),
    get buffered() {
      return out.unread;
    },
    pause: () => input.pause(),
    resume: () => input.resume(),
    end: () => out.end(),
    cut: () => out.cut("the connection was cut"),
    probe: () => undefined,
  };
  const { clearance } = principal;
  const connection = new NdjsonConnection({
    ...{ host, loop: kernel.loop, stream, adapter: "http", clearance },
    closed: () => input.resume(),
    admit: (message) => scopedMessage(principal, message),
  });
  const open: OpenStream = {
    get frames() {
      return connection.frames;
    },
    dismiss: () => connection.close(),
  };
  streams.add(open);
  const drained = async () => {
    while (!out.isEnded) {
      await out.whenRoom();
      connection.drained();
      if (out.unread === 0) return;
    }
  };
  void input
    .feed(context.req.raw.body, (chunk) => {
      connection.data(chunk);
      void drained();
    })
    .then(
      () => connection.ended(),
      () => connection.lost(),
    );
  return new Response(out.body, { headers: { "content-type": "application/x-ndjson", "cache-control": "no-store" } });
}

/** Reads a body chunk by chunk, and no further while it is paused. */
class PausableInput {
  #resumed: Promise<void> | undefined;
  #resume: () => void = () => undefined;

  pause(): void {
    this.#resumed ??= new Promise((resolve) => {
      this.#resume = resolve;
    });
  }

  resume(): void {
    this.#resumed = undefined;
    this.#resume();
  }

  async feed(body: ReadableStream<Uint8Array> | null, data: (chunk: Uint8Array) => void): Promise<void> {
    for await (const chunk of body ?? []) {
      data(chunk);
      await this.#resumed;
    }
  }
}
