/** The parts that routes share, and the variables of one request. */
import type { Context } from "hono";
import type { Host } from "../host/host.ts";
import type { EventLoop } from "../loop/event-loop.ts";
import type { Json } from "../message/json.ts";
import type { Principal } from "./principal.ts";
import type { RequestCounts } from "./request-counts.ts";

/** A kernel as this room needs it; `Kernel` is one. */
export interface HttpKernel {
  readonly loop: EventLoop;
  query(type: string, data: Json): Promise<Json>;
  /** The principal of a token. */
  authenticate(token: string): Promise<Principal | undefined>;
}

/** A response that goes on until it is ended. */
export interface OpenStream {
  /** Bytes that the client has not read. */
  readonly frames: number;
  /** Ends it in good order. */
  dismiss(): void;
}

/** A client of a WebSocket. */
export interface OpenSocket {
  readonly frames: number;
  /** Reads no more. */
  quiet(): void;
  /** Answers open requests with 503, and ends in good order. */
  close(): void;
  cut(): void;
}

export interface HttpParts {
  readonly host: Host;
  readonly kernel: HttpKernel;
  /** Open streams, which end when the server drains. */
  readonly streams: Set<OpenStream>;
  /** Clients of WebSockets. */
  readonly webSockets: Set<OpenSocket>;
  readonly requests: RequestCounts;
  /** Whether new work is refused. */
  isDraining: boolean;
}

export type HttpEnv = { Variables: { principal: Principal } };
export type HttpContext = Context<HttpEnv>;
