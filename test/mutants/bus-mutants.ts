/** Planted bugs of the bus: retries, recovery, receipts, order. */
import type { Mutant } from "./mutant.ts";

export const BUS_MUTANTS: readonly Mutant[] = [
  {
    name: "earlier-retry-does-not-rearm",
    breaks: "J2",
    file: "src/bus/retry-timer.ts",
    find: "(this.#armed !== undefined && this.#armed.atMs <= atMs)",
    replace: "this.#armed !== undefined",
    tests: ["test/bus/retry.test.ts"],
  },
  {
    name: "retry-without-timer",
    breaks: "J2",
    file: "src/bus/settle-queue.ts",
    find: `(outcome.kind === "retry" || outcome.kind === "waits") && outcome.atMs !== undefined)`,
    replace: `outcome.kind === "waits" && outcome.atMs !== undefined)`,
    tests: ["test/bus/retry.test.ts"],
  },
  {
    name: "no-receipt-where-handler-returns-nothing",
    breaks: "J3",
    file: "src/bus/transactional-share.ts",
    find: "    attempt.seal(new Receipt(receiptFor(handling), resultOf(value)));",
    replace: "    attempt.seal(value == null ? undefined : new Receipt(receiptFor(handling), resultOf(value)));",
    tests: ["test/bus/transactional.test.ts"],
  },
  {
    name: "serial-key-overtaken",
    breaks: "J4",
    file: "src/bus/serial-order.ts",
    find: "    if (this.#checkedThrough >= run.id) return lane.first === run;",
    replace: "    if (this.#checkedThrough >= run.id) return true;",
    tests: ["test/bus/serial.test.ts"],
  },
  {
    name: "emit-of-a-failed-attempt-published",
    breaks: "J5",
    file: "src/bus/transactional-share.ts",
    find: '      ? attempt.commitReads("the handler threw", isAbsent)',
    replace: "      ? attempt.commit()",
    tests: ["test/bus/transactional.test.ts"],
  },
  {
    name: "bus-receipt-unlabelled",
    breaks: "F1",
    file: "src/work/attempt.ts",
    find: "    if (this.label.length > 0) transaction.labels.push({ scope, id, path: [], labels: [...this.label] });\n",
    replace: "",
    tests: ["test/cells/labels.test.ts", "test/cells/labels-restart.test.ts", "test/bus/transactional.test.ts"],
  },
  {
    name: "settle-refused-once-is-given-up",
    breaks: "K1",
    file: "src/bus/settle-queue.ts",
    find: `      if (left.runs.length > 0) this.#send(left, "now");\n`,
    replace: "",
    tests: ["test/bus/stopping.test.ts", "test/bus/dispatch.test.ts", "test/bus/simulation.test.ts"],
  },
  {
    name: "events-of-dead-processes-not-recovered",
    breaks: "K1",
    file: "src/bus/dispatcher.ts",
    find: "    this.#retireLeases();\n    void this.#recover();",
    replace: "    this.#retireLeases();",
    tests: ["test/bus/lease.test.ts", "test/bus/left-behind.test.ts", "test/kernel/two-kernels.test.ts"],
  },
];
