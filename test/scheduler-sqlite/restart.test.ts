import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, describe, expect, test } from "vitest";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import { type LongPart, rounds, timeoutMs } from "../portable/long-run.ts";
import { RestartTrial, worldOf } from "../scheduler/restart-model.ts";
import { Life } from "../scheduler/restart-setup.ts";

const PART: LongPart = { name: "restarts on a file", short: 12, long: 500, minutes: 1.5 };

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
  test(
    "[I7] restarts, kills and changes behind its back: the same values, and no run that the other does not make",
    async () => {
      let restarts = 0;
      let seeds = 0;
      for (const seed of rounds(PART)) {
        seeds = seed;
        const [stays, restarted] = [await newFile(), await newFile()];
        const on = (path: string) =>
          worldOf(seed, (host) => async () => openSqliteStore({ path, host, durability: "process" }));
        const met = await new RestartTrial(seed, { stays: on(stays), restarts: on(restarted) }).run(20);
        restarts += met.restarts + met.kills;
      }
      expect(restarts).toBeGreaterThan(seeds);
    },
    timeoutMs(PART),
  );

  test("[I7] rows that are missing, cannot be read or are not ours start their own nodes fresh, and no others", async () => {
    const path = await newFile();
    const host = simulatedHost(1);
    const open = () => openSqliteStore({ path, host, durability: "process" });
    const names = ["whole", "gone", "text", "shape", "paths", "inputs", "number", "document"];
    const build = (life: Life) =>
      names.map((name) => {
        const source = life.space.cell<Record<string, number>>("source");
        return life.space.computed(
          name,
          life.noting(name, () => source.key(name).get()),
          { fingerprint: "f" },
        );
      });
    await host.run(async () => {
      const store = await open();
      const life = await Life.begin(host, store);
      life.space.cell("source").set(Object.fromEntries(names.map((name, i) => [name, i])));
      for (const node of build(life)) await node.pull();
      await life.space.close();
      await store.close();
    });
    const file = new DatabaseSync(path);
    file.exec("DELETE FROM node WHERE name = 'gone'");
    file.exec("UPDATE node SET settings = '{' WHERE name = 'text'");
    file.exec(`UPDATE node SET settings = '{"seen":7}' WHERE name = 'shape'`);
    file.exec(
      "UPDATE path_set SET reads = '[{\"path\":1}]' WHERE id = (SELECT inputs ->> 2 FROM node WHERE name = 'paths')",
    );
    file.exec("UPDATE node SET inputs = '[1' WHERE name = 'inputs'");
    file.exec("UPDATE node SET inputs = '[1,1]' WHERE name = 'number'");
    file.exec("UPDATE node SET inputs = '[999,1,1]' WHERE name = 'document'");
    file.close();
    await host.run(async () => {
      const store = await open();
      const life = await Life.begin(host, store);
      const nodes = await life.space.restore(() => build(life));
      const values = await Promise.all(nodes.map((node) => node.pull()));
      expect(values).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
      expect([...new Set(life.ran)].sort()).toEqual(["document", "gone", "inputs", "number", "paths", "shape", "text"]);
      await life.space.close();
      await store.close();
    });
  });
});
