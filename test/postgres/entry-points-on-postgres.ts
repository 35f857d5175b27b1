/**
 * Worlds on a Postgres database, for the cases of entry points. Simulated time stands still while the database works.
 */
import { describe, test } from "vitest";
import type { Host, Timer, TimerOptions } from "../../src/host/host.ts";
import type { SimulatedHost } from "../../src/host/simulated-host.ts";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import type { Store } from "../../src/store/store.ts";
import { NO_POSTGRES, SchemaPool, testServer } from "../store/postgres/server.ts";
import { describeOnce } from "../work/describe-once.ts";
import type { EntryPoint } from "../work/entry-points.ts";
import type { MakeDisk } from "../work/world.ts";

/** Each call to the database has a timer with this delay, from its start to its answer. No other timer has it. */
const DEADLINE_MS = 29_989;

const server = testServer();
const schemas = new SchemaPool(server);

/** Sleeping leaves the processor to the database, and saves steps of the simulation. */
const SLEEP_MS = 0.2;
const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** A simulated host with a task to do for as long as a call to the database is open: then no time passes. */
function waitingHost(host: SimulatedHost): Host {
  let open = 0;
  const wait = () => {
    if (open === 0) return;
    Atomics.wait(sleeper, 0, 0, SLEEP_MS);
    host.task(wait);
  };
  const callTimer = (): Timer => {
    let isOpen = true;
    if (open++ === 0) host.task(wait);
    return {
      cancel() {
        const wasOpen = isOpen;
        isOpen = false;
        if (wasOpen) open--;
        return wasOpen;
      },
    };
  };
  return new Proxy<Host>(host, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (name === "timer")
        return (delayMs: number, fire: () => void, options?: TimerOptions) =>
          delayMs === DEADLINE_MS ? callTimer() : target.timer(delayMs, fire, options);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}

interface OpenWorld {
  readonly schema: string;
  readonly host: SimulatedHost;
  readonly stores: Store[];
}

let last: OpenWorld | undefined;

/** Ends the world of the test before. */
async function endLast(): Promise<void> {
  const ended = last;
  last = undefined;
  if (ended === undefined) return;
  await ended.host.run(() => Promise.all(ended.stores.map((store) => store.close())));
  await schemas.giveBack(ended.schema);
}

const postgresWorlds: MakeDisk = () => {
  let world: OpenWorld | undefined;
  return async (host) => {
    if (world === undefined) {
      await endLast();
      world = { schema: await schemas.take(), host, stores: [] };
      last = world;
    }
    const tuning = { clock: "host" as const, deadlineMs: DEADLINE_MS, feedCommits: 2 };
    const { schema } = world;
    const options = { url: server.url, schema, durability: "process", notice: "poll", tuning } as const;
    const store = await openPostgresStore({ ...options, host: waitingHost(host) });
    world.stores.push(store);
    return store;
  };
};

/** The cases of some entry points on a Postgres database. */
export function describeOnPostgres(entryPoints: readonly EntryPoint[]): void {
  if (NO_POSTGRES === undefined) {
    for (const entryPoint of entryPoints) describeOnce(entryPoint, "Postgres", postgresWorlds);
    return;
  }
  const reason = NO_POSTGRES;
  describe("entry points on Postgres", () => {
    test.skip(reason, () => {});
  });
}
