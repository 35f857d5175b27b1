/**
 * Live views of the kernel: a query of type `Kernel.*` that clients watch is asked again and again, once for all of its
 * watchers, and told when its answer differs. Without a watcher nothing runs. SPEC: W2.
 *
 *     watched ──ask──> answered ──differs from the last──> told
 *        ^                └──VIEW_EVERY_MS later──┘
 */
import type { Host, Timer } from "../host/host.ts";
import { VIEW_EVERY_MS } from "../limits.ts";
import type { EventLoop } from "../loop/event-loop.ts";
import type { WatchedQuery, Watcher } from "../loop/shared-query.ts";
import { Failure, thrownText } from "../message/error-data.ts";

const VIEW = /^Kernel\./;

export interface WatchedViewParts {
  readonly host: Host;
  loop(): EventLoop;
}

/** Starts to ask; the returned function ends it. Undefined if the kernel has no such query. */
export function watchView(
  { host, loop }: WatchedViewParts,
  { type, data, clearance }: WatchedQuery,
  watcher: Watcher,
): (() => void) | undefined {
  if (!VIEW.test(type) || loop().table.route("query", type) === undefined) return undefined;
  if (clearance !== undefined)
    throw new Failure(403, `${type} shows data of all labels, and this client has a clearance; use one without`);
  let timer: Timer | undefined;
  let isWatched = true;
  let told: string | undefined;
  const tell = (text: string, how: () => void) => {
    if (!isWatched) return;
    if (text !== told) {
      told = text;
      how();
    }
    timer = host.timer(VIEW_EVERY_MS, ask, { keepAlive: false });
  };
  const ask = () =>
    void loop()
      .query(type, data)
      .then(
        (answer) => tell(JSON.stringify(answer), () => watcher.answer(answer)),
        (thrown: unknown) => tell(thrownText(thrown), () => watcher.failed(thrown)),
      );
  ask();
  return () => {
    isWatched = false;
    timer?.cancel();
  };
}
