/** Planted bugs of the store on Postgres, and of work that several kernels share. */
import type { Mutant } from "./mutant.ts";

const SCHEMA = "src/store/postgres/schema.ts";
const FAULTS = "test/store/postgres/faults.test.ts";
const DIFFERENTIAL = "test/store/postgres/differential.test.ts";
const POSTGRES = "test/store/postgres/postgres.test.ts";
const FAILOVER = "test/store/postgres/failover.test.ts";

export const POSTGRES_MUTANTS: readonly Mutant[] = [
  {
    // A single statement has the snapshot from before it waited for the lock.
    name: "postgres-decides-before-the-lock",
    breaks: "S283",
    file: SCHEMA,
    find: `    PERFORM \${m}.lock_v1(names);
    -- A new statement`,
    replace: `    -- A new statement`,
    tests: ["test/store/postgres/kernels.test.ts", "test/postgres/history.test.ts"],
  },
  {
    name: "postgres-reads-off-by-one",
    breaks: "S283",
    file: SCHEMA,
    find: "WHEN d.sequence <= greatest(x.q, 0) THEN false",
    replace: "WHEN d.sequence <= greatest(x.q, 0) + 1 THEN false",
    tests: [DIFFERENTIAL, "test/postgres/history.test.ts"],
  },
  {
    name: "postgres-batch-without-a-number",
    breaks: "S260",
    file: SCHEMA,
    find: "IF FOUND AND w.batch = p_batch THEN RETURN w.answer; END IF;",
    replace: "IF FOUND AND w.batch = p_batch THEN RETURN NULL; END IF;",
    tests: [FAULTS],
  },
  {
    name: "postgres-writer-without-a-fence",
    breaks: "S262",
    file: SCHEMA,
    find: "IF NOT FOUND OR w.ended OR w.batch <> p_batch - 1 THEN",
    replace: "IF NOT FOUND THEN",
    tests: [FAULTS],
  },
  {
    name: "postgres-trusts-notifications",
    breaks: "S266",
    file: "src/store/postgres/watch.ts",
    find: "const hasMoved = this.#seen !== counters.sum;",
    replace: "const hasMoved = this.#seen === undefined;",
    tests: [POSTGRES],
  },
  {
    name: "postgres-sends-each-commit-alone",
    breaks: "S264",
    file: "src/store/postgres/writer.ts",
    find: "        while (count < this.#queued) {",
    replace: "        while (count < 1) {",
    tests: [POSTGRES],
  },
  {
    name: "postgres-takes-an-old-primary",
    breaks: "S285",
    file: "src/store/postgres/server-choice.ts",
    find: "server.timeline < known.timeline;",
    replace: "server.timeline < 0;",
    tests: [FAILOVER],
  },
  {
    name: "postgres-keeps-the-history-it-knows",
    breaks: "S263",
    file: "src/store/postgres/writer.ts",
    find: "if (history === this.#history || this.isAway || this.#options.readOnly) return;",
    replace: "if (history !== this.#history || this.isAway || this.#options.readOnly) return;",
    tests: [FAULTS],
  },
  {
    name: "postgres-poll-mode-prepares",
    breaks: "S288",
    file: "src/store/postgres/link.ts",
    find: `this.#prepares = notice === "listen";`,
    replace: `this.#prepares = notice !== undefined;`,
    tests: ["test/store/postgres/poll-mode.test.ts"],
  },
  {
    name: "postgres-level-stays-in-the-session",
    breaks: "S288",
    file: "src/store/postgres/link.ts",
    find: "SET LOCAL synchronous_commit",
    replace: "SET synchronous_commit",
    tests: ["test/store/postgres/poll-mode.test.ts"],
  },
  {
    name: "replica-position-is-raised",
    breaks: "S230",
    file: "src/store/confirmation.ts",
    find: `    this.position = 0;
    this.foreignReceipts?.missed();
    const reload = this.#newReload();
    this.position = await reload.run(true);`,
    replace: `    const before = this.position;
    this.foreignReceipts?.missed();
    const reload = this.#newReload();
    this.position = Math.max(before, await reload.run(true));`,
    tests: ["test/store/core/replica-history.test.ts", "test/kernel/backup-history.test.ts"],
  },
  {
    name: "lease-number-without-random-bits",
    breaks: "J20",
    file: "src/store/lease-number.ts",
    find: "RANDOM_VALUES + Math.floor(host.random() * RANDOM_VALUES);",
    replace: "RANDOM_VALUES + Math.floor(host.random());",
    tests: ["test/store/core/lease-number.test.ts"],
  },
  {
    name: "singleton-without-a-deadline",
    breaks: "X82",
    file: "src/extensions/ownership.ts",
    find: "const leftMs = askedAtMs + (leaseMs * 3) / 4 - host.monotonic();",
    replace: "const leftMs = askedAtMs + leaseMs * 100 - host.monotonic();",
    tests: ["test/extensions/singletons.test.ts"],
  },
  {
    name: "singleton-keeps-its-term",
    breaks: "X81",
    file: "src/extensions/ownership.ts",
    find: "term: (row?.term ?? 0) + 1",
    replace: "term: row?.term ?? 1",
    tests: ["test/extensions/singletons.test.ts"],
  },
  {
    name: "schedules-by-the-clock-of-the-process",
    breaks: "X62",
    file: "src/extensions/schedule-slot.ts",
    find: "const untilSlotMs = slotMs - due.now();",
    replace: "const untilSlotMs = slotMs - host.now();",
    tests: ["test/extensions/shared-schedules.test.ts"],
  },
];
