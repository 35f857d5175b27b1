/**
 * A process with a bus on a SQLite file: it publishes, handles, and writes its events to standard output, one line
 * each:
 *
 *     ready                     the bus is started
 *     ack <name> <id>           an event was acknowledged
 *     plain <id>                the plain handler was called
 *     idle                      (drain only) no event is left to handle
 *
 * Arguments: the file, the process's name, and `publish` (until killed), `handle` (until its input ends) or `drain`.
 */
import { argv, kill, pid, stdin } from "node:process";
import { EventBus } from "../../src/bus/event-bus.ts";
import { Space } from "../../src/cells/space.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import { tell } from "../crash/tell.ts";

export type Role = "publish" | "handle" | "drain";

const [path, name, role] = argv.slice(2) as [string, string, Role];
const CALLERS = 4;
const PAUSE_MS = 3;

const host = systemHost();
const store = await openSqliteStore({ path, host, durability: "process" });
const space = await Space.open({ store, host, name: "home" });
const bus = new EventBus({ store, host });

bus.subscribe(
  "job",
  (event) => {
    tell(`plain ${event.id}`);
    return host.yield();
  },
  { subscriberId: "plain" },
);
bus.subscribe(
  "job",
  async (event, tx) => {
    const effect = space.cell(`effect:${(event.payload as { name: string }).name}`, 0);
    const count = tx.get(effect);
    if (event.id % 3 === 0) await host.yield();
    tx.set(effect, count + 1);
    tx.emit("job.done", event.payload);
  },
  { subscriberId: "effect", space },
);
bus.subscribe("job.done", () => {}, { subscriberId: "watcher" });
bus.subscribe("poison", () => kill(pid, "SIGKILL"), { subscriberId: "deadly" });

await bus.recover();
await bus.start();
tell("ready");
if (role === "publish") await Promise.all(Array.from({ length: CALLERS }, (_, caller) => publishForEver(caller)));
else if (role === "handle") await untilInputEnds();
else await untilIdle();
await bus.stop();
await store.close();

async function publishForEver(caller: number): Promise<never> {
  for (let n = 0; ; n++) {
    const event = `${name}-${caller}-${n}`;
    tell(`ack ${event} ${await bus.publish("job", name, { name: event })}`);
    // A load that leaves the machine to others.
    await new Promise<void>((resolve) => host.timer(PAUSE_MS, resolve));
  }
}

function untilInputEnds(): Promise<void> {
  return new Promise((resolve) => stdin.on("end", resolve).resume());
}

async function untilIdle(): Promise<void> {
  for (;;) {
    const { pending, processing } = await store.count();
    if (pending + processing === 0) return tell("idle");
    await new Promise<void>((resolve) => host.timer(20, resolve));
  }
}
