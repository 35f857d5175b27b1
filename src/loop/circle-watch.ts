/**
 * Looks for circles of actors that have come to wait for each other though none of their requests caused the other (`crossedCircles`), tells of
 * those that stand, and ends them by a bound.
 *
 * ```
 *   nothing ──an actor that has asked is asked──> suspected ──every second a look──> stands ──told──> 30 s later: its last request is 504
 *      ^──────────────no such request is left─────────┘ ^────somebody has gone on────────┘
 * ```
 * Whether a handler waits for what it has asked, or is busy with something else, nobody can see. So nothing is refused when a circle closes, and a request
 * is given up only after all in the circle have stood still for long, as any request is that times out (RFC 0032 §9.1, §12.7): it may be handled later.
 *
 * It costs requests a look at whether the actor that is asked has asked itself; a look goes through what is pending, once a second at most. SPEC: L36.
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
  /** Circles that were there at the last look, by their requests. */
  #standing = new Map<string, Standing>();

  constructor(parts: CircleWatchParts) {
    this.#parts = parts;
  }

  /** An actor that has asked is asked. */
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
      // A request is made in one handling: the same requests are the same handlers, which have not ended since.
      const key = circle.requests.map(({ id }) => id).join(" ");
      const known = this.#standing.get(key);
      standing.set(key, known === undefined ? { sinceMs: nowMs, isTold: false } : this.#again(circle, known, nowMs));
    }
    this.#standing = standing;
    // A circle has an end that is to be waited for; where actors only wait for a slow one, nothing may ever come.
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
