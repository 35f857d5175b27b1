/** The facts that give a number its meaning: processor, cores, runtime, engine. No names and no paths. */
import { availableParallelism, cpus, loadavg } from "node:os";
import { DatabaseSync } from "node:sqlite";

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly node: string;
  readonly sqlite: string;
  /** Of the last minute, when the run starts: other people's work. */
  readonly load: number;
}

export function machine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: availableParallelism(),
    node: process.versions.node,
    sqlite: sqliteVersion(),
    load: Number(loadavg()[0]!.toFixed(2)),
  };
}

export function machineText({ cpu, cores, node, sqlite, load }: Machine): string {
  return `${cpu} · ${cores} cores · node ${node} · sqlite ${sqlite} · load ${load}`;
}

/** A caution for readers of the numbers; undefined on an idle machine. */
export function caveat({ cores, load }: Machine): string | undefined {
  if (load <= cores) return undefined;
  return `the machine is busy with other work (load ${load} on ${cores} cores): compare ratios, and repeat with more --rounds`;
}

function sqliteVersion(): string {
  const database = new DatabaseSync(":memory:");
  try {
    return String(database.prepare("select sqlite_version() as version").get()?.["version"]);
  } finally {
    database.close();
  }
}
