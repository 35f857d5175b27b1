/**
 * Planted bugs of the rooms that the other lists leave out: message, host, cells, extensions, app, kernel, client,
 * command line, HTTP.
 */
import type { Mutant } from "./mutant.ts";

const LOCK = "test/kernel/instance-lock.test.ts";
const APP_EVENTS = "test/app/events.test.ts";
const REPAIRS = "test/cli/repairing.test.ts";
const PIECES = "test/cells/pieces-life.test.ts";
const TOTALS = "test/cells/collection.test.ts";
const CLIENT = "test/client/client.test.ts";
const GATE = "test/http/gate.test.ts";

export const ROOM_MUTANTS: readonly Mutant[] = [
  // message
  {
    name: "star-matches-several-segments",
    breaks: "M28",
    file: "src/message/topic-pattern.ts",
    find: "      while (t < topic.length && topic.charCodeAt(t) !== DOT) t++;",
    replace: "      while (t < topic.length) t++;",
    tests: ["test/message/topic.test.ts"],
  },
  {
    name: "keys-of-canonical-json-not-sorted",
    breaks: "M17",
    file: "src/message/canonical-json.ts",
    find: "if (keys[i - 1]! > keys[i]!) return keys.sort();",
    replace: "if (keys[i - 1]! > keys[i]!) return keys.reverse();",
    tests: ["test/message/canonical-json.test.ts"],
  },
  {
    name: "proto-key-becomes-the-prototype",
    breaks: "M32",
    file: "src/message/json-copy.ts",
    find: `    const child = copyJson(value[key] as Json);
    if (key === "__proto__")`,
    replace: `    const child = copyJson(value[key] as Json);
    if (key === "")`,
    tests: ["test/message/json-copy.test.ts"],
  },
  {
    name: "message-type-of-three-names",
    breaks: "M3",
    file: "src/message/envelope.ts",
    find: "if (end === dot + 1 || end !== text.length) return false;",
    replace: "if (end === dot + 1) return false;",
    tests: ["test/message/envelope.test.ts"],
  },
  // host
  {
    name: "ids-fall-back-with-the-clock",
    breaks: "H8",
    file: "src/host/uuid-v7.ts",
    find: "    if (now > this.#ms) this.#startAt(now);",
    replace: "    if (now !== this.#ms) this.#startAt(now);",
    tests: ["test/host/uuid-v7.test.ts"],
  },
  {
    name: "heap-not-mended-after-a-cancel",
    breaks: "H5",
    file: "src/host/timer-heap.ts",
    find: "    this.#siftUp(last);\n    this.#siftDown(last);",
    replace: "    this.#siftDown(last);",
    tests: ["test/host/timer-heap.test.ts"],
  },
  {
    name: "timers-of-a-killed-process-fire",
    breaks: "H18",
    file: "src/host/simulated-process.ts",
    find: "    for (const timer of this.#timers) timer.armed?.cancel();\n",
    replace: "",
    tests: ["test/host/simulated-process.test.ts"],
  },
  // cells
  {
    name: "sums-not-kept",
    breaks: "R98",
    file: "src/cells/collection-totals.ts",
    find: `if (sum !== 0) this.#change(total, ["sums", name], sum);`,
    replace: `if (sum > 0) this.#change(total, ["sums", name], sum);`,
    tests: [TOTALS, "test/cells/collection-model.test.ts"],
  },
  {
    name: "rolled-back-state-shown",
    breaks: "R58",
    file: "src/cells/confirmed-calls.ts",
    find: "if (stands && !this.#isOver) this.#callWith(next.value);",
    replace: "if (stands !== undefined && !this.#isOver) this.#callWith(next.value);",
    tests: ["test/cells/confirmed-sinks.test.ts"],
  },
  {
    name: "sink-called-after-its-end",
    breaks: "R58",
    file: "src/cells/confirmed-calls.ts",
    find: "    this.#isOver = true;\n    this.#waiting = [];",
    replace: "    this.#isOver = this.#waiting.length === 0;",
    tests: ["test/cells/confirmed-sinks.test.ts"],
  },
  {
    name: "starts-and-stops-out-of-turn",
    breaks: "P21",
    file: "src/cells/pieces.ts",
    find: "const turn = before === undefined ? work() : before.then(work);",
    replace: "const turn = work();",
    tests: [PIECES],
  },
  {
    name: "launched-piece-of-the-inner-piece",
    breaks: "P22",
    file: "src/cells/pieces.ts",
    find: "this.#index.enter(id, pattern.name, owner?.root);",
    replace: "this.#index.enter(id, pattern.name, owner?.id);",
    tests: [PIECES],
  },
  {
    name: "stop-of-another-process-ignored",
    breaks: "P4",
    file: "src/cells/pieces.ts",
    find: "    if (!this.#index.has(gone)) this.#running.get(gone)?.discard();",
    replace: "    if (this.#index.has(gone)) this.#running.get(gone)?.discard();",
    tests: [PIECES],
  },
  {
    name: "pieces-without-a-pattern-not-named",
    breaks: "P6",
    file: "src/cells/pieces.ts",
    find: "else left.push({ id, pattern: name, reason: built });",
    replace: "else left.length = 0;",
    tests: ["test/cells/pieces-restart.test.ts", "test/cells/pieces.test.ts"],
  },
  // extensions
  {
    name: "key-used-for-other-data",
    breaks: "X22",
    file: "src/extensions/publish-once.ts",
    find: "if (first.message === undefined || equal(first.message.data, message.data)) return first.id;",
    replace: "if (first.message !== undefined || equal(first.message, message.data)) return first.id;",
    tests: ["test/extensions/context.test.ts"],
  },
  {
    name: "loaded-without-what-it-depends-on",
    breaks: "X11",
    file: "src/extensions/load-order.ts",
    find: "    const reason = visit(dependency);",
    replace: "    const reason = visit(dependency) && undefined;",
    tests: ["test/extensions/loading.test.ts"],
  },
  {
    name: "slot-of-a-live-process-claimed",
    breaks: "X43",
    file: "src/extensions/schedule-slot.ts",
    find: "    if (hold === undefined || alone) return untilSlotMs;",
    replace: "    if (hold === undefined || hold.forMs > 0 || alone) return untilSlotMs;",
    tests: ["test/extensions/schedule-slots.test.ts"],
  },
  {
    name: "late-code-is-not-told",
    breaks: "X16",
    file: "src/extensions/time-limit.ts",
    find: "    controller.abort(reason);\n    reject(reason);",
    replace: "    reject(reason);",
    tests: ["test/extensions/context.test.ts", "test/extensions/handling.test.ts", "test/extensions/life.test.ts"],
  },
  // app
  {
    name: "minutes-of-six-seconds",
    breaks: "A30",
    file: "src/app/duration.ts",
    find: "min: 60_000",
    replace: "min: 6_000",
    tests: ["test/app/duration.test.ts"],
  },
  {
    name: "failed-step-never-called",
    breaks: "A18",
    file: "src/app/steps.ts",
    find: "if (!steps.failed || !this",
    replace: "if (steps.failed || !this",
    tests: [APP_EVENTS],
  },
  {
    name: "idempotency-key-of-each-attempt",
    breaks: "A16",
    file: "src/app/steps.ts",
    find: `contentId(["run", subscriberId, event.message.metadata.id])`,
    replace: `contentId(["run", subscriberId, event.message.metadata.id, attempt])`,
    tests: [APP_EVENTS],
  },
  {
    name: "commit-step-without-receipt",
    breaks: "A17",
    file: "src/app/steps.ts",
    find: "const id = this.#idOf(type, event);",
    replace: "const id = host.id();",
    tests: [APP_EVENTS],
  },
  {
    name: "failed-beside-commit",
    breaks: "A46",
    file: "src/app/steps.ts",
    find: "if (await this.#isCommitted(event)) return;",
    replace: "",
    tests: [APP_EVENTS],
  },
  // kernel
  {
    name: "refusal-noted-as-a-dead-letter",
    breaks: "L51",
    file: "src/kernel/bus-journal.ts",
    find: `      kind === "failed"
        ?`,
    replace: `      kind !== undefined
        ?`,
    tests: ["test/work/tx-messages.test.ts"],
  },
  {
    name: "pid-file-of-another-kernel-removed",
    breaks: "K69",
    file: "src/kernel/instance-lock.ts",
    find: "    if (holderOf(this.#directory) === process.pid) rmSync(",
    replace: "    rmSync(",
    tests: [LOCK],
  },
  {
    name: "pid-written-through-a-link",
    breaks: "K69",
    file: "src/kernel/instance-lock.ts",
    find: `  rmSync(file, { force: true });
  writeFileSync(file, text, { mode: 0o600, flag: "wx" });`,
    replace: "  writeFileSync(file, text, { mode: 0o600 });",
    tests: [LOCK],
  },
  {
    name: "erased-answer-taken-for-another-request",
    breaks: "K124",
    file: "src/loop/transactional.ts",
    find: "  if (isErasedResult(receipt))\n",
    replace: '  if (isErasedResult(receipt) && message.kind === "event")\n',
    tests: ["test/kernel/erase.test.ts"],
  },
  {
    name: "erased-result-of-a-send-answered",
    breaks: "K124",
    file: "src/scheduler/send-answers.ts",
    find: 'isErasedResult(result) ? "was erased" : undefined',
    replace: "undefined",
    tests: ["test/kernel/erase.test.ts"],
  },
  // client
  {
    name: "reconnect-loses-its-place",
    breaks: "K35",
    file: "src/client/subscription.ts",
    find: "        from = event.cursor;\n",
    replace: "",
    tests: [CLIENT, "test/client/exchanges.test.ts"],
  },
  {
    name: "refusal-given-to-any-request",
    breaks: "K30",
    file: "src/client/waiting-requests.ts",
    find: "this.size === 1 && this.#givenUpBytes === 0;",
    replace: "this.size >= 1;",
    tests: ["test/client/refusals.test.ts", CLIENT],
  },
  // cli
  {
    name: "purge-counts-dead-letters",
    breaks: "K92",
    file: "src/cli/purge.ts",
    find: `      if (row.status !== "done") continue;`,
    replace: `      if (row.status === "pending") continue;`,
    tests: [REPAIRS],
  },
  {
    name: "requeue-of-a-filter-without-yes",
    breaks: "K44",
    file: "src/cli/requeue.ts",
    find: `  if (named.length === 0 && !options["yes"]) {`,
    replace: `  if (named.length === 0 && options["yes"] === false) {`,
    tests: [REPAIRS],
  },
  {
    name: "discard-without-reason",
    breaks: "K90",
    file: "src/cli/discard.ts",
    find: `  if (typeof reason !== "string" || reason.trim() === "")`,
    replace: `  if (typeof reason !== "string")`,
    tests: [REPAIRS],
  },
  // http
  {
    name: "pages-of-foreign-origins-pass",
    breaks: "W26",
    file: "src/http/gate.ts",
    find: "!cors.includes(origin) && !isOwn(origin, host)",
    replace: "cors.includes(origin) && !isOwn(origin, host)",
    tests: [GATE],
  },
  {
    name: "key-of-one-principal-answers-another",
    breaks: "W21",
    file: "src/http/idempotency.ts",
    find: `contentId(["http", name, text])`,
    replace: `contentId(["http", name.slice(0, 0), text])`,
    tests: ["test/http/requests.test.ts"],
  },
  {
    name: "pattern-of-a-scope-not-looked-at",
    breaks: "W27",
    file: "src/http/principal.ts",
    find: `if (pattern === undefined || pattern === "*") return true;`,
    replace: "if (pattern === undefined || pattern.length > 0) return true;",
    tests: [GATE],
  },
  {
    name: "tools-of-the-kernel-exposed",
    breaks: "W31",
    file: "src/mcp/tools.ts",
    find: "return OWN_TYPE.test(pattern) ?",
    replace: 'return OWN_TYPE.test("") ?',
    tests: ["test/mcp/mcp.test.ts"],
  },
  {
    name: "key-of-a-tool-call-ignored",
    breaks: "W32",
    file: "src/mcp/tools.ts",
    find: "...(hasKey ? { key } : {})",
    replace: "...(hasKey ? {} : {})",
    tests: ["test/mcp/mcp.test.ts"],
  },
  {
    name: "data-of-a-tool-call-lost",
    breaks: "W31",
    file: "src/mcp/tools.ts",
    find: 'return args["data"] ?? null;',
    replace: 'return args["input"] ?? null;',
    tests: ["test/mcp/mcp.test.ts"],
  },
];
