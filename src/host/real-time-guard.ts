/**
 * Makes the runtime's own clocks, timers and random sources throw while a simulation runs. SPEC: H16.
 *
 * It replaces globals, so it misses functions that a module captured before (as the hosts and a test runner do) or
 * imported by name. `queueMicrotask` stays allowed: promise jobs run in order, so it adds neither time nor randomness.
 * So do `clearTimeout` and `new Date(value)`.
 *
 * Globals belong to the whole process: while a guard is active, unrelated code is affected too.
 */

import { HostError } from "./host.ts";

/** Paths from the global object. Missing ones are skipped. */
const FORBIDDEN_CALLS = [
  "performance.now",
  "Temporal.Now.instant",
  "Temporal.Now.plainDateISO",
  "Temporal.Now.plainDateTimeISO",
  "Temporal.Now.plainTimeISO",
  "Temporal.Now.zonedDateTimeISO",
  "setTimeout",
  "setInterval",
  "setImmediate",
  "requestAnimationFrame",
  "requestIdleCallback",
  "AbortSignal.timeout",
  "MessageChannel",
  "Math.random",
  "crypto.randomUUID",
  "crypto.getRandomValues",
] as const;

export interface RealTimeGuard {
  /** The first forbidden call while this guard was active: code under test may have caught its error. */
  readonly violation: HostError | undefined;
  /** Restores the globals when every guard is released. */
  release(): void;
}

type Restore = () => void;

/** The globals are replaced while it is not empty. */
const held = new Set<Guard>();
let restores: Restore[] = [];

class Guard implements RealTimeGuard {
  violation: HostError | undefined;

  release(): void {
    if (!held.delete(this) || held.size > 0) return;
    for (const restore of restores.reverse()) restore();
    restores = [];
  }
}

export function forbidRealTime(): RealTimeGuard {
  const guard = new Guard();
  if (held.size === 0) restores = [...FORBIDDEN_CALLS.flatMap(forbidCall), forbidCurrentDate()];
  held.add(guard);
  return guard;
}

function forbidCall(path: string): Restore[] {
  const keys = path.split(".");
  const name = keys.pop()!;
  let owner: object = globalThis;
  for (const key of keys) {
    const next: unknown = Reflect.get(owner, key);
    if ((typeof next !== "object" && typeof next !== "function") || next === null) return [];
    owner = next;
  }
  if (typeof Reflect.get(owner, name) !== "function") return [];
  // A `function`, because some of these are called with `new`.
  return [
    replace(owner, name, function forbidden(): never {
      throw violate(`${path}()`);
    }),
  ];
}

/**
 * `Date.now()`, `new Date()` and `Date()` read the clock; `new Date(value)` does not. Only the global is replaced: a
 * test runner that keeps a reference to the real `Date` uses it for its console lines.
 */
function forbidCurrentDate(): Restore {
  const forbiddenNow = (): never => {
    throw violate("Date.now()");
  };
  return replace(
    globalThis,
    "Date",
    new Proxy(Date, {
      get(target, key, receiver): unknown {
        return key === "now" ? forbiddenNow : Reflect.get(target, key, receiver);
      },
      apply(): never {
        throw violate("Date()");
      },
      construct(target, args, newTarget): object {
        if (args.length === 0) throw violate("new Date()");
        return Reflect.construct(target, args, newTarget);
      },
    }),
  );
}

function replace(owner: object, key: string, value: unknown): Restore {
  const before = Object.getOwnPropertyDescriptor(owner, key);
  Object.defineProperty(owner, key, {
    value,
    configurable: true,
    writable: true,
    enumerable: before?.enumerable ?? false,
  });
  return () => {
    if (before === undefined) Reflect.deleteProperty(owner, key);
    else Object.defineProperty(owner, key, before);
  };
}

function violate(call: string): HostError {
  const error = new HostError(
    "REAL_TIME_IN_SIMULATION",
    `${call} was called while a simulation runs, so the run is no longer a function of its seed. Take a Host and use its clock, timers, tasks and chance instead.`,
  );
  for (const guard of held) guard.violation ??= error;
  return error;
}
