/**
 * The time of a request's body: a client that sends it slower is answered with 408, and its connection ends. An
 * exchange of lines goes on as long as its client wants. SPEC: W23, W93.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Host } from "../host/host.ts";
import { HTTP_BODY_MS } from "../limits.ts";

const UNLIMITED_PATH = "/v1/messages";
const TOO_LATE = "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

export function limitBodyTime(host: Host, incoming: IncomingMessage, response: ServerResponse): void {
  const { headers, url, socket } = incoming;
  const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
  if (!hasBody || url?.split("?", 1)[0] === UNLIMITED_PATH) return;
  const timer = host.timer(
    HTTP_BODY_MS,
    () => {
      if (incoming.complete) return;
      if (!response.headersSent) socket.write(TOO_LATE);
      socket.destroySoon();
    },
    { keepAlive: false },
  );
  const cancel = () => timer.cancel();
  incoming.once("end", cancel).once("close", cancel);
}
