/**
 * The seam between a client and its transport: messages as text out, messages in. A socket has one link for each
 * connection; a page has one WebSocket, and its links share it.
 */
import type { Message } from "../message/envelope.ts";
import type { ClientHost } from "./page-host.ts";

export interface LinkEvents {
  message(message: Message): void;
  /** The link is gone; called once, also after `end`. */
  lost(): void;
}

export interface ClientLink {
  /** The text of one message, without line breaks. */
  send(text: string): void;
  /** Stops reading until `resume`. A transport that cannot wait ends the link; the reader asks again later. */
  pause(): void;
  resume(): void;
  end(): void;
}

/** Opens links to one kernel. */
export interface Source {
  readonly host: ClientHost;
  /** Length of a text in UTF-8. */
  bytesOf(text: string): number;
  /** A link for any requests and their answers; with a request, one that sends it and gets the messages it causes. */
  open(events: LinkEvents, request?: Message): Promise<ClientLink>;
}
