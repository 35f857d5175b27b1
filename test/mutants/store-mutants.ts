/** Planted bugs of the store: durability, decisions on commits, the journal's claims. */
import type { Mutant } from "./mutant.ts";

export const STORE_MUTANTS: readonly Mutant[] = [
  {
    name: "ack-before-commit",
    breaks: "J1",
    file: "src/store/sqlite/group-commit.ts",
    find: "    this.#finish(this.#runJobs() ?? [], callers);",
    replace: `    const jobs = this.#runJobs() ?? [];
    for (const job of jobs) job.succeed();
    this.#state = { kind: "waiting" };
    this.#host.timer(1, () => {
      if (this.#state.kind === "waiting") this.#finish(jobs, callers);
    });`,
    tests: ["test/crash/killing.test.ts"],
  },
  {
    name: "power-durability-without-flush",
    breaks: "J1",
    file: "src/store/sqlite/connection.ts",
    find: `["synchronous", durability === "power" ? 2 : 1],`,
    replace: `["synchronous", 1],`,
    tests: ["test/store/sqlite/open.test.ts"],
  },
  {
    name: "store-goes-on-after-failed-flush",
    breaks: "J1",
    file: "src/store/sqlite/group-commit.ts",
    find: `    for (const job of jobs) job.fail(rejected("unknown", "io-error", message));
    this.#stopFor(error);`,
    replace: `    for (const job of jobs) job.fail(rejected("unknown", "io-error", message));`,
    tests: ["test/crash/io-errors.test.ts"],
  },
  {
    name: "receipt-outside-transaction",
    breaks: "J3",
    file: "src/store/sqlite/store.ts",
    find: "      const job = new CommitJob(this.#commits, commit, listener);",
    replace: `      const guarded = request.preconditions.filter(({ kind }) => kind === "absent") as readonly { scope: string; id: string }[];
      const isReceipt = ({ scope, id }: { scope: string; id: string }) =>
        guarded.some((one) => one.scope === scope && one.id === id);
      const receipts = commit.patches.filter(isReceipt);
      if (receipts.length > 0) {
        const bare = { reads: [], settlements: [], dependsOn: [], due: [], basisRemoved: [] };
        const late = { ...commit.request, ...bare, session: \`\${request.session} later\` };
        const rest = { entries: [], due: [], basis: [], labels: [], labelsText: undefined };
        const later = { ...commit, ...rest, request: late, patches: receipts };
        this.#host.timer(2, () => this.#writer.submit(new CommitJob(this.#commits, later, () => undefined)));
      }
      const now = { ...commit, patches: commit.patches.filter((patch) => !isReceipt(patch)), births: [] };
      const job = new CommitJob(this.#commits, receipts.length > 0 ? now : commit, listener);`,
    tests: ["test/crash/killing.test.ts"],
  },
  {
    name: "epoch-not-checked",
    breaks: "J3",
    file: "src/store/sqlite/journal-statements.ts",
    find: "next_attempt_at = NULL, lease = NULL, deaths = 0 WHERE $" + "{HELD}",
    replace: "next_attempt_at = NULL, lease = NULL, deaths = 0 WHERE id = ? AND ? > 0 AND ? > 0",
    tests: ["test/crash/zombie.test.ts", "test/store/conformance-sqlite.test.ts"],
  },
  {
    name: "absent-precondition-ignored",
    breaks: "J3",
    file: "src/store/commit-rules.ts",
    find: "      if (facts.head(condition)) {",
    replace: "      if (facts.horizonMs < 0 && facts.head(condition)) {",
    tests: ["test/store/memory.test.ts"],
  },
  {
    name: "claims-in-reverse-order",
    breaks: "J4",
    file: "src/store/sqlite/journal-table.ts",
    find: `.sort((a, b) => Number(a["id"]) - Number(b["id"]))`,
    replace: `.sort((a, b) => Number(b["id"]) - Number(a["id"]))`,
    tests: ["test/store/conformance-sqlite.test.ts"],
  },
  {
    name: "moved-read-committed",
    breaks: "S1",
    file: "src/store/commit-rules.ts",
    find: "if (writeTouchesRead(path, read.path, read.depth)) return true;",
    replace: `if (path.length === 0 && writeTouchesRead(path, read.path, read.depth)) return true;`,
    tests: ["test/store/memory.test.ts"],
  },
  {
    name: "sqlite-settles-partial-of-others",
    breaks: "S1",
    file: "src/store/sqlite/journal-table.ts",
    find: "        return this.#sql.held.get(id, lease, attempt) !== undefined;\n      case",
    replace: "        return true;\n      case",
    tests: ["test/store/conformance-sqlite.test.ts"],
  },
  {
    name: "parked-rows-found-by-a-scan",
    breaks: "S86",
    file: "src/store/sqlite/journal-statements.ts",
    find: "WHERE +status = 'pending' AND id IN",
    replace: "WHERE status = 'pending' AND id IN",
    tests: ["test/store/sqlite/query-plans.test.ts"],
  },
  {
    name: "lost-file-noticed-by-the-timer-alone",
    breaks: "S129",
    file: "src/store/sqlite/group-commit.ts",
    find: "const trouble = this.#guard?.trouble();\n    if (trouble === undefined) return true;",
    replace: "const trouble = undefined;\n    if (trouble === undefined) return true;",
    tests: ["test/store/sqlite/file-guard.test.ts"],
  },
  {
    name: "two-slices-in-a-batch",
    breaks: "S127",
    file: "src/store/sqlite/upkeep.ts",
    find: "sliced === undefined || this.#hasSlice ||",
    replace: "sliced === undefined ||",
    tests: ["test/store/sqlite/snapshot-slices.test.ts"],
  },
];
