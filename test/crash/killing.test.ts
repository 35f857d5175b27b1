/**
 * Layer 3: real processes, killed. The life of a file is a chain of programs; each is killed, from outside at a random
 * moment or by itself at a named probe, and the next one goes on with its files. The oracle is this process: it learns
 * from a pipe which operations began and were acknowledged, and checks a copy of the files after each kill.
 */
import { copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { counted, type LongPart, Rounds, roundsMax, timeoutMs } from "../portable/long-run.ts";
import { History, type HistoryMark } from "./history.ts";
import { checkImage } from "./image-check.ts";
import type { KilledPlan } from "./killed-program.ts";
import { exitOf, linesOf, requireShim, startProgram, temporaryDirectory } from "./shim.ts";
import { openStore } from "./store-setting.ts";

const PART: LongPart = { name: "kill -9 of a store", short: 56, long: 10_000, minutes: 5 };
const KILLS_PER_FILE = 14;
const SEED = 20_260_101;
const DAY_MS = 86_400_000;
const ROUNDS = 12;

type End = NonNullable<KilledPlan["end"]>;

/** One way to die; the numbers are drawn anew each time. */
const ENDS: Readonly<Record<string, (random: SeededRandom) => End | undefined>> = {
  "another hand at a random moment": () => undefined,
  "after a claim": (random) => ({ probe: "after-claim", passes: random.below(8), by: { kind: "self" } }),
  "mid handler": (random) => ({ probe: "mid-handler", passes: random.below(12), by: { kind: "self" } }),
  "after commit, before acknowledgement": (random) => ({
    probe: "before-commit",
    passes: random.below(12),
    by: { kind: "shim", calls: "sync", nth: 1 },
  }),
  "after receipt, before reply": (random) => ({
    probe: "after-receipt",
    passes: random.below(3),
    by: { kind: "self" },
  }),
  "in recover": () => ({ probe: "before-recover", passes: 0, by: { kind: "shim", calls: "any", nth: 1 } }),
  "at a random call": (random) => ({
    probe: "before-recover",
    passes: 0,
    by: { kind: "shim", calls: "any", nth: 1 + random.below(300) },
  }),
};

const shim = requireShim();

describe.skipIf(shim.kind === "skipped")("kill -9", () => {
  test(`[J1] [J3] [S24] up to ${roundsMax(PART)} killed processes lose no acknowledged write and handle no event twice`, {
    timeout: timeoutMs(PART),
  }, async () => {
    if (shim.kind === "skipped") return;
    const random = new SeededRandom(SEED);
    const names = Object.keys(ENDS);
    const reached = new Map<string, number>();
    let acknowledged = 0;
    const budget = new Rounds(PART);
    let kills = 0;
    while (budget.goesOn(kills)) {
      const life = new FileLife(shim.library, temporaryDirectory("kill"));
      for (let i = 0; i < KILLS_PER_FILE && budget.goesOn(kills); i++) {
        const name = names[kills % names.length] ?? "";
        const signal = await life.run(random, ENDS[name]?.(random));
        if (signal === "SIGKILL") {
          kills += 1;
          reached.set(name, (reached.get(name) ?? 0) + 1);
        }
        expect(await life.findings(), `seed ${SEED}, kill ${kills}: ${name}`).toEqual([]);
      }
      acknowledged += life.history.acknowledged;
      await life.end();
    }
    counted(kills, "kills of a store");
    console.log(`kill -9: ${kills} kills (seed ${SEED}), acknowledged deeds ${acknowledged}, lost 0, handled twice 0`);
    for (const name of names) expect(reached.get(name) ?? 0, `kills ${name}`).toBeGreaterThan(0);
  });
});

/** One database file and all that was ever said about it. */
class FileLife {
  readonly history = new History();
  readonly #library: string;
  readonly #directory: string;
  #programs = 0;

  constructor(library: string, directory: string) {
    this.#library = library;
    this.#directory = directory;
    mkdirSync(join(directory, "live"));
    mkdirSync(join(directory, "copy"));
  }

  get #path(): string {
    return join(this.#directory, "live", "kill.db");
  }

  /** Runs the next program until it dies; says of which signal. */
  async run(random: SeededRandom, end: End | undefined): Promise<NodeJS.Signals | null> {
    const n = ++this.#programs;
    const plan: KilledPlan = {
      path: this.#path,
      durability: "power",
      name: `p${n}`,
      seed: random.uint32(),
      rounds: ROUNDS,
      deedsBefore: n * 1_000_000,
      clockAheadMs: n * DAY_MS,
      foreignCheckpoints: true,
      ...(end ? { end } : {}),
    };
    const child = startProgram({
      library: this.#library,
      program: "killed-program.ts",
      args: [JSON.stringify(plan)],
      directory: join(this.#directory, "live"),
    });
    let linesLeft = end ? Number.POSITIVE_INFINITY : 1 + random.below(100);
    const exit = exitOf(child);
    for await (const line of linesOf(child)) {
      this.history.apply(JSON.parse(line) as HistoryMark);
      if (--linesLeft === 0) child.kill("SIGKILL");
    }
    const { code, signal } = await exit;
    if (code !== null && code !== 0) throw new Error(`the program ended with ${code} instead of being killed`);
    return signal;
  }

  /** The faults of the files as they are now. They are copied first, so that the next program finds them unchanged. */
  async findings(): Promise<readonly unknown[]> {
    const copy = join(this.#directory, "copy", "kill.db");
    for (const suffix of ["", "-wal", "-shm", "-journal"]) {
      rmSync(copy + suffix, { force: true });
      if (suffix !== "-shm" && existsSync(this.#path + suffix)) copyFileSync(this.#path + suffix, copy + suffix);
    }
    return checkImage({ path: copy, durability: "power" }, this.history);
  }

  async end(): Promise<void> {
    const store = await openStore({ path: this.#path, durability: "power" });
    const report = await store.verify();
    await store.close();
    expect(report.problems).toEqual([]);
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
