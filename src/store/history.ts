/** Makes the id of a history of data (`connection.ts`). Short, because cursors of clients begin with it. SPEC: S231. */
import type { Host } from "../host/host.ts";

export function newHistory(host: Pick<Host, "random">): string {
  return Math.floor(host.random() * 2 ** 52).toString(36);
}
