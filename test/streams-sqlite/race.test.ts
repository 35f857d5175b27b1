import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { Space } from "../../src/cells/space.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import { isLongRun } from "../portable/long-run.ts";

const PROGRAM = fileURLToPath(new URL("race-program.ts", import.meta.url));
const JOBS = isLongRun ? 20_000 : 2_000;

/** A racer: ready when `ready` resolves; its outcomes when it has ended. */
function start(file: string, name: string) {
  const child = spawn(process.execPath, ["--no-warnings", PROGRAM, file, name, String(JOBS)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  let text = "";
  const ready = Promise.withResolvers<void>();
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
    if (text.includes("ready\n")) ready.resolve();
  });
  const ended = new Promise<[job: number, kind: string, result: string][]>((resolve, reject) => {
    child.on("close", (code) => {
      ready.reject(new Error(`${name} ended with ${code}`));
      if (code === 0) resolve(JSON.parse(text.split("\n")[1] as string));
      else reject(new Error(`${name} ended with ${code}`));
    });
  });
  ready.promise.catch(() => {});
  return { ready: ready.promise, go: () => child.stdin.write("go\n"), ended };
}

test("[I11] two processes race for the same events on one SQLite file: one handling each, none lost, and the loser gets the winner's result", async () => {
  const directory = mkdtempSync(join(tmpdir(), "millrace-race-"));
  try {
    const file = join(directory, "race.db");
    const racers = [start(file, "a"), start(file, "b")];
    await Promise.all(racers.map(({ ready }) => ready));
    for (const { go } of racers) go();
    const outcomes = (await Promise.all(racers.map(({ ended }) => ended))).flat();
    const kinds = Map.groupBy(outcomes, ([, kind]) => kind);
    expect([...kinds.keys()].sort()).toEqual(["already", "handled"]);
    expect([kinds.get("handled")?.length, kinds.get("already")?.length]).toEqual([JOBS, JOBS]);

    const host = systemHost();
    const store = await openSqliteStore({ path: file, host });
    const space = await Space.open({ store, host, name: "race" });
    const effects = Array.from({ length: JOBS }, (_, job) => space.cell<string[]>(`effect ${job}`));
    const seen = await Promise.all(effects.map((effect) => effect.pull()));
    expect(seen.filter((names) => names?.length !== 1)).toEqual([]);
    expect(outcomes.filter(([job, , result]) => seen[job]?.[0] !== result)).toEqual([]);
    expect(await space.cell("tally").pull()).toBe(JOBS / 10);
    await space.close();
    await store.close();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
