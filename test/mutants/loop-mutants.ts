/** Planted bugs of the loop, its adapters and the client: lanes, routing, bounds, receipts of commands. */
import type { Mutant } from "./mutant.ts";

export const LOOP_MUTANTS: readonly Mutant[] = [
  {
    name: "user-lane-first",
    breaks: "L1",
    file: "src/loop/turns.ts",
    find: "this.#system.shift() ?? this.#user.shift()",
    replace: "this.#user.shift() ?? this.#system.shift()",
    tests: ["test/loop/turns.test.ts"],
  },
  {
    name: "slice-without-end",
    breaks: "L1",
    file: "src/loop/slice.ts",
    find: "    return now >= this.#until;",
    replace: "    return false;",
    tests: ["test/loop/turns.test.ts"],
  },
  {
    name: "any-actor-may-answer",
    breaks: "N1",
    file: "src/loop/pending-table.ts",
    find: "(from !== undefined && entry.actor !== from)",
    replace: "(from === undefined && entry.actor === from)",
    tests: ["test/loop/pending.test.ts", "test/loop/routing.test.ts"],
  },
  {
    name: "any-client-may-expire-a-request",
    breaks: "N1",
    file: "src/loop/router.ts",
    find: `return waiting.kind === "adapter" && waiting.connection.id === client;`,
    replace: `return waiting.kind === "adapter";`,
    tests: ["test/loop/pending.test.ts", "test/loop/routing.test.ts"],
  },
  {
    name: "requests-in-flight-unbounded",
    breaks: "N2",
    file: "src/adapters/ndjson-connection.ts",
    find: "this.#inFlight >= this.#limits.requestsInFlightMax || ",
    replace: "",
    tests: ["test/adapters/connection.test.ts", "test/adapters/hostile.test.ts"],
  },
  {
    name: "unread-output-unbounded",
    breaks: "N2",
    file: "src/adapters/ndjson-connection.ts",
    find: "this.#unread.length > chunksMax || this.#unsent >= this.#limits.unreadOutputBytesMax;",
    replace: "this.#unread.length > chunksMax;",
    tests: ["test/adapters/connection.test.ts", "test/adapters/hostile.test.ts"],
  },
  {
    name: "no-receipt-where-answer-is-null",
    breaks: "J3",
    file: "src/loop/transactional.ts",
    find: "  transaction.leave(new Receipt(receipt, kept));",
    replace: "  if (kept.result !== null) transaction.leave(new Receipt(receipt, kept));",
    tests: ["test/loop/transactional.test.ts"],
  },
  {
    name: "command-receipt-unlabelled",
    breaks: "F1",
    file: "src/loop/transactional.ts",
    find: "    transaction.labels.push({ ...receipt, path: [], labels: [...tx.label] });\n",
    replace: "",
    tests: ["test/loop/clearance.test.ts"],
  },
  {
    name: "timers-open-to-clearance",
    breaks: "F1",
    file: "src/loop/admission.ts",
    find: `(origin.kind === "actor" && capability.relays)`,
    replace: "capability.relays",
    tests: ["test/loop/clearance.test.ts"],
  },
  {
    name: "events-of-a-thrown-command-published",
    breaks: "J5",
    file: "src/loop/transactional.ts",
    find: "  if (end.threw) return { committed: transaction.commitReads(requireAbsent(receipt)).outcome, end };",
    replace: `  if (end.threw) {
    const { entries } = transaction;
    if (entries.length > 0) return { committed: tx.commit(), end };
    return { committed: transaction.commitReads(requireAbsent(receipt)).outcome, end };
  }`,
    tests: ["test/loop/transactional.test.ts", "test/kernel/kernel.test.ts"],
  },
  {
    name: "request-repeated-only-once",
    breaks: "K33",
    file: "src/client/client.ts",
    find: "    for (const waiting of this.#waiting) {\n      waiting.repeated = true;",
    replace:
      "    for (const waiting of this.#waiting) {\n      if (waiting.repeated) continue;\n      waiting.repeated = true;",
    tests: ["test/client/client.test.ts"],
  },
  {
    name: "socket-open-to-others-until-chmod",
    breaks: "N10",
    file: "src/adapters/unix-socket.ts",
    find: "process.umask(0o177)",
    replace: "process.umask(0o000)",
    tests: ["test/adapters/socket-file.test.ts"],
  },
];
