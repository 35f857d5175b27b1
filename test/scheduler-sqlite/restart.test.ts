import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import { RestartTrial, worldOf } from "../scheduler/restart-model.ts";

const isLong = process.env["MILLRACE_LONG"] === "1";
const SEEDS = isLong ? 500 : 12;

const directories: string[] = [];

afterEach(async () => {
  for (const directory of directories.splice(0)) await rm(directory, { recursive: true, force: true });
});

async function newFile(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "millrace-restart-"));
  directories.push(directory);
  return join(directory, "store.db");
}

describe("restart on a SQLite file", () => {
  test("[I7] restarts, kills and changes behind its back: the same values, and no run that the other does not make", async () => {
    let restarts = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const [stays, restarted] = [await newFile(), await newFile()];
      const on = (path: string) =>
        worldOf(seed, (host) => async () => openSqliteStore({ path, host, durability: "process" }));
      const met = await new RestartTrial(seed, { stays: on(stays), restarts: on(restarted) }).run(20);
      restarts += met.restarts + met.kills;
    }
    expect(restarts).toBeGreaterThan(SEEDS);
  }, 600_000);
});
