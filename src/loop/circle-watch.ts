/**
 * Finds circles of actors that wait for each other although none of their requests caused the other (`crossedCircles`),
 * reports those that last, and ends them after a time limit. SPEC: L36.
 *
 * ```
 *   idle ──request to an actor that has asked──> suspected ──a look every second──> stands ──reported──> 30 s: 504
 *    ^─────────────no such request is left───────────┘ ^────────an actor went on───────┘
 * ```
 * It is not visible whether a handler waits for its request or does other work. So no request is refused when a circle
 * closes. A request is given up only after all actors in the circle have stood still for long, as at any timeout (RFC
 * 0032 §9.1, §12.7): it may still be handled later.
 *
 * Cost: one check per request whether the asked actor has asked a request itself, and at most one walk over the pending
 * requests per second.
 */
import type { Host, Timer } from "../host/host.ts";
import { CIRCLE_LOOK_MS, CIRCLE_WAIT_MS } from "../limits.ts";
import type { Observations } from "./observation.ts";
import type { PendingTable } from "./pending-table.ts";
import type { RequestDispatch } from "./request-dispatch.ts";
import { type Circle, crossedCircles, isSuspect } from "./waiting-circle.ts";

export interface CircleWatchParts {
  readonly host: Host;
  readonly pending: PendingTable;
  readonly observations: Observations;
  readonly dispatch: RequestDispatch;
}

interface Standing {
  readonly sinceMs: number;
  readonly isTold: boolean;
}

export class CircleWatch {
  readonly #parts: CircleWatchParts;
  #timer: Timer | undefined;
  #stopped = false;
  /** The circles of the last look, by their requests. */
  #standing = new Map<string, Standing>();

  constructor(parts: CircleWatchParts) {
    this.#parts = parts;
  }

  /** Called when a request goes to an actor that has asked one itself. */
  suspect(): void {
    if (this.#timer === undefined) this.#lookLater(true);
  }

  #lookLater(keepAlive: boolean): void {
    if (!this.#stopped) this.#timer = this.#parts.host.timer(CIRCLE_LOOK_MS, this.#look, { keepAlive });
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  readonly #look = (): void => {
    this.#timer = undefined;
    const { host, pending } = this.#parts;
    const nowMs = host.monotonic();
    const standing = new Map<string, Standing>();
    for (const circle of crossedCircles(pending)) {
      // A request belongs to one handling: the same requests mean the same handlers, which have not ended since.
      const key = circle.requests.map(({ id }) => id).join(" ");
      const known = this.#standing.get(key);
      standing.set(key, known === undefined ? { sinceMs: nowMs, isTold: false } : this.#again(circle, known, nowMs));
    }
    this.#standing = standing;
    // A standing circle keeps the process alive, because it will end. A mere wait for a slow actor does not.
    for (const request of pending) if (isSuspect(request)) return this.#lookLater(standing.size > 0);
  };

  #again(circle: Circle, { sinceMs, isTold }: Standing, nowMs: number): Standing {
    if (nowMs - sinceMs >= CIRCLE_WAIT_MS)
      this.#parts.dispatch.timeoutLater(circle.last, `given up: ${whyCrossed(circle)}`);
    else if (!isTold) this.#tell(circle);
    return { sinceMs, isTold: true };
  }

  #tell(circle: Circle): void {
    const { last, actors } = circle;
    const reason = `${whyCrossed(circle)}; where none goes on, ${last.kind} ${last.type} is given up after ${CIRCLE_WAIT_MS / 1_000} s`;
    this.#parts.observations.tell("Sys.WaitingCircle", { actors, request: last.type, reason }, last);
  }
}

function whyCrossed({ actors }: Circle): string {
  const advice = "let one of them ask before it is asked itself, or use send() and do not wait";
  return `${actors.join(" waits for ")}, and each handles one message at a time; ${advice}`;
}
