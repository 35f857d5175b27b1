/**
 * The server side of `bench/kernel`: a kernel on a real file with one command for each step of the path; each does the
 * work of the step before, and one thing more. Prints `ready` when it listens; ends with its input.
 */
import { join } from "node:path";
import { Kernel } from "millrace/kernel";
import { type Capability, capability, systemHost, transactional } from "millrace/loop";
import type { Space } from "millrace/signals";
import { openSqliteStore } from "millrace/sqlite";

const [, directory = ""] = process.argv.slice(2);

/** Accounts, so that commands that come together seldom touch the same one. */
const ACCOUNTS = 64;

interface Deposit {
  readonly index: number;
  readonly text: string;
}

function steps(space: Space): Record<string, Capability> {
  const plain = Array.from({ length: ACCOUNTS }, (_, n) => space.cell<number>(`plain/${n}`));
  const watched = Array.from({ length: ACCOUNTS }, (_, n) => space.cell<number>(`watched/${n}`));
  let seen = 0;
  let heard = 0;
  // Observed derived state: each write to a watched account changes its own share and the total.
  const shares = watched.map((account, n) => space.computed(`share/${n}`, () => (account.get() ?? 0) * 2));
  const total = space.computed("total", () => shares.reduce((sum, share) => sum + (share.get() ?? 0), 0));
  total.sink(() => seen++);
  const at = ({ index }: Deposit) => Math.abs(index) % ACCOUNTS;
  return {
    answered: capability({ description: "answers", queries: { "Step.Answer": { handle: () => ({ ok: true }) } } }),
    steps: transactional({
      space,
      description: "one thing more at a time",
      emits: { "Step.Happened": true },
      commands: {
        "Step.Write": {
          handle: (deposit: Deposit, tx) => {
            const account = plain[at(deposit)]!;
            tx.set(account, (tx.get(account) ?? 0) + 1);
            return { ok: true };
          },
        },
        "Step.Derive": {
          handle: (deposit: Deposit, tx) => {
            const account = watched[at(deposit)]!;
            tx.set(account, (tx.get(account) ?? 0) + 1);
            return { ok: true };
          },
        },
        "Step.Event": {
          handle: (deposit: Deposit, tx) => {
            const account = watched[at(deposit)]!;
            tx.set(account, (tx.get(account) ?? 0) + 1);
            tx.emit("Step.Happened", { ...deposit });
            return { ok: true };
          },
        },
      },
    }),
    clerk: capability({ description: "hears of it", on: { "Step.Happened": () => void heard++ } }),
    counts: capability({
      description: "says what has been done",
      queries: { "Step.Counts": { handle: async () => ({ heard, seen, total: (await total.pull()) ?? 0 }) } },
    }),
  };
}

const host = systemHost();
const store = await openSqliteStore({ path: join(directory, "kernel.db"), host });
await Kernel.open({
  host,
  store,
  socketPath: join(directory, "bench.sock"),
  capabilities: ({ space }) => steps(space),
});
console.log("ready");
process.stdin.on("end", () => process.exit(0)).resume();
