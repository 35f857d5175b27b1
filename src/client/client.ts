/** A client over the kernel's socket. */
import type { Host } from "../host/host.ts";
import { systemHost } from "../host/system-host.ts";
import { checkMessage, type Message } from "../message/envelope.ts";
import { type AnyExchanges, type Exchanges, KernelClient, type RequestsOptions } from "./kernel-client.ts";
import { socketSource } from "./line-link.ts";

/** The socket of a client, and its limits. */
export interface ClientOptions extends RequestsOptions {
  /** The kernel's socket: `.millrace/kernel.sock`. */
  readonly path: string;
  readonly host?: Host;
}

/** A client of the kernel on a Unix socket. */
export class Client<Types extends Exchanges = AnyExchanges> extends KernelClient<Types> {
  /** Fails with NOT_REACHABLE if no kernel listens now. */
  static async connect<Types extends Exchanges = AnyExchanges>(options: ClientOptions): Promise<Client<Types>> {
    const source = socketSource(options.path, options.host ?? systemHost());
    const client = new Client<Types>(source, options, requestProblem);
    await client.connect();
    return client;
  }
}

/** Why a message cannot be sent as a request. */
export function requestProblem(message: Message): string | undefined {
  const checked = checkMessage(message);
  if (checked.kind === "refused") return checked.message;
  if (message.kind === "command" || message.kind === "query") return undefined;
  return `${message.kind} ${message.type} has no answer; emit events, and send commands and queries`;
}
