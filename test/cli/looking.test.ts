/** `ls`, `show`, `trace`, `why` and `graph`, on a running kernel and on a stopped one's file. */
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { timers } from "../../src/cli/list-stored.ts";
import { runtimeName, runtimeVersion } from "../../src/cli/runtime.ts";
import { freeRow, put } from "../../src/extensions/schedule-row.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { openStore } from "../../src/kernel/open-store.ts";
import { atItsSlot } from "../../src/kernel/state-views.ts";
import { Replica } from "../../src/store/replica.ts";
import { runProgram } from "../repo/program.ts";
import { setup } from "./cli-setup.ts";

/** A kernel that has taken two orders, refused one, and has a timer and a request waiting. */
async function busyKernel() {
  const parts = setup();
  const kernel = await parts.start();
  const client = await kernel.connect();
  await client.command("Shop.Order", { price: 30 });
  const [answer] = await parts.json("send", "Shop.Order", '{"price": 12}');
  const orderId = (answer as { metadata: { causation: string } }).metadata.causation;
  await client.emit("Order.Refused", { price: 0 });
  await parts.untilStatus("Order.Refused", "failed");
  const message = { kind: "command", type: "Shop.Order", data: { price: 1 } };
  const { timerId } = (await client.command("Timer.Set", { delayMs: 86_400_000, message })) as { timerId: string };
  client.command("Gate.Hold", null).catch(() => "ends with the kernel");
  return { ...parts, kernel, client, orderId, timerId };
}

interface JsonTree {
  readonly id: string;
  readonly row?: { readonly topic: string };
  readonly handlings: readonly { readonly type: string }[];
  readonly children: readonly JsonTree[];
}

interface Shape {
  readonly [type: string]: Shape;
}

/** A tree by the types of its messages; by the id where only that is known. */
function shape({ id, row, handlings, children }: JsonTree): Shape {
  const below = Object.assign({}, ...children.map(shape)) as Shape;
  return { [row?.topic ?? handlings[0]?.type ?? id]: below };
}

describe("a running kernel", () => {
  test("[K41] ls lists every kind, as a table and as JSON", async () => {
    const { millrace, json, timerId, client } = await busyKernel();
    const lists = {
      events: /^\d+ +done +1 .* event +Order\.Placed +shop$/m,
      documents: /^orders +space +\d+ +\[30,12\]$/m,
      requests: /^\S+ +waiting +\S+ +command +Gate\.Hold +gate$/m,
      actors: /^shop +running +0 +2 +0 +takes orders$/m,
      work: /^\S+Z +\d+\.\d +running +command +gate +Gate\.Hold +\S+ +300\.0 s$/m,
      nodes: /^sum +computation +clean +somebody +\d+ +orders$/m,
      timers: new RegExp(`^${timerId} +\\S+ +timer +command Shop\\.Order$`, "m"),
      failures: /^\d+ +failed .*Order\.Refused.*the printer is on fire/m,
      types: /^Shop\.Order +command +shop +takes orders$/m,
    };
    for (const [kind, line] of Object.entries(lists)) {
      expect(await millrace("ls", kind), kind).toMatchObject({ code: 0, stdout: expect.stringMatching(line) });
      expect((await json("ls", kind)).length, kind).toBeGreaterThan(0);
    }
    expect((await millrace("ls", "types")).stdout).toMatch(/^Kernel\.Requeue +command +operator /m);
    expect(await millrace("ls", "extensions")).toMatchObject({ code: 0, stdout: "no extensions\n" });
    for (const [topic, said] of [
      ["Order.Plced", "no events; did you mean Order.Placed?\n"],
      ["Another.Thing", "no events\n"],
    ] as const)
      expect(await millrace("ls", "events", "--topic", topic)).toMatchObject({ code: 0, stdout: said });
    expect((await millrace("ls", "nodes", "--topic", "x")).code).toBe(2);
    await client.close();
  });

  test("[K18] [K158] trace shows the changes of a command and the nodes that ran because of it", async () => {
    const { millrace, json, orderId, client } = await busyKernel();
    const { stdout } = await millrace("trace", orderId);
    expect(stdout.split("\n").slice(1)).toEqual([
      "├─ orders   [30] -> [30,12]",
      "│  └─ sum   ran   because orders",
      "│     └─ sink of sum   ran   because sum",
      expect.stringMatching(
        /^└─ event Order\.Placed {3}done {3}shop {3}\+\d+ ms {3}-> audit \(\d+\.\d ms\), ledger \(\d+\.\d ms\)$/,
      ),
      "   ├─ audit   done",
      "   ├─ ledger Order.*   done",
      '   └─ last-order   {"price":30} -> {"price":12}',
      "",
    ]);
    const [tree] = await json("trace", orderId);
    expect(tree).toMatchObject({ deed: { changes: [{ address: "orders", before: [30], after: [30, 12] }] } });
    expect(tree).toMatchObject({ handlings: [{ handler: "shop", outcome: "replied", tookMs: expect.any(Number) }] });
    await client.close();
  });

  test("[K176] trace has one line for the indexes and totals that a collection keeps, and --json has all of them", async () => {
    const { millrace, json, client } = await busyKernel();
    const [answer] = await json("send", "Shop.Plan", '{"due": 7}');
    const { causation: id } = (answer as { metadata: { causation: string } }).metadata;
    expect((await millrace("trace", id)).stdout.split("\n").slice(1)).toEqual([
      '├─ tasks/at/t1   nothing -> {"due":7}',
      expect.stringMatching(/^└─ tasks {3}\d+ places of its indexes and totals$/),
      "",
    ]);
    const [tree] = (await json("trace", id)) as { deed: { changes: { address: string }[] } }[];
    expect(tree?.deed.changes.map(({ address }) => address)).toContain("tasks/index/by_due/root");
    await client.close();
  });

  test("[K71] [K72] a plain command, a query and a timer appear in one tree; after the end as messages without a row", async () => {
    const { millrace, json, start } = setup();
    const kernel = await start();
    const [answer] = await json("send", "Clerk.Remind", '{"price": 7}');
    const { causation: id } = (answer as { metadata: { causation: string } }).metadata;
    const trees = async () => (await json("trace", id)) as never as JsonTree[];
    while (!JSON.stringify(await trees()).includes("Order.Placed"));
    const [tree, ...others] = await trees();
    expect(others).toEqual([]);
    expect(shape(tree as JsonTree)).toEqual({
      "Clerk.Remind": { "Syscall.Ping": {}, "Timer.Set": { "Timer.Fired": {}, "Shop.Order": { "Order.Placed": {} } } },
    });
    expect((await millrace("trace", id)).stdout).toMatch(
      /^command Clerk\.Remind {3}replied {3}clerk {3}\S+ {3}took \d+\.\d ms\n├─ query Syscall\.Ping {3}replied {3}syscall/,
    );
    expect((await millrace("why", id)).stdout).toMatch(
      /^request \S+ Clerk\.Remind {3}replied after \d+\.\d ms\n {2}command of a client of the socket, given to clerk at \S+\n/,
    );
    await kernel.stop();
    const [left, ...more] = await trees();
    expect(more).toEqual([]);
    const ghost = shape(left as JsonTree);
    expect(Object.values(ghost)).toEqual([{ "Timer.Fired": {}, "Shop.Order": { "Order.Placed": {} } }]);
    expect((await millrace("trace", id)).stdout).toMatch(/^message \(left no row\) {3}\S+\n├─ event Timer\.Fired/);
  });

  test("[K72] trace --json gives whole values, and the length of those it cuts", async () => {
    const { json, start } = setup();
    const kernel = await start();
    const note = "x".repeat(3_000);
    for (const text of [note, note.repeat(2)])
      await json("send", "Memory.Set", JSON.stringify({ key: "/note", value: text }));
    const rows = (await json("ls", "events")) as { topic?: string }[];
    expect(rows.length).toBeGreaterThan(0);
    const stories = await Promise.all([1, 2, 3, 4].map((row) => json("trace", String(row)).catch(() => [])));
    const text = JSON.stringify(stories);
    expect(text).toContain(`"after":"${note}"`);
    expect(text).toContain('"characters":6002');
    await kernel.stop();
  });

  test("[K73] why names the command and its sender, cells, subscribers and capabilities", async () => {
    const { millrace, orderId, client } = await busyKernel();
    const why = async (name: string) => (await millrace("why", name)).stdout;
    const writer = `command Shop\\.Order \\(${orderId}\\) of a client of the socket, handled by shop`;
    expect(await why("sum")).toMatch(new RegExp(`^ {2}orders was written by ${writer}$`, "m"));
    expect(await why("orders")).toMatch(
      new RegExp(`^cell orders {3}holds \\[30,12\\]\n {2}written by ${writer}\n {2}read by sum`),
    );
    expect(await why("last-order")).toMatch(/^ {2}written by event Order\.Refused \(\S+\), handled by ledger/m);
    expect(await why("shop")).toMatch(
      /^capability shop {3}is running; 0 messages wait\n[\s\S]*command Shop\.Order \(\S+\): replied in /,
    );
    expect(await why("printer")).toMatch(
      /^subscriber printer {3}hears Order\.Refused\n {2}event Order\.Refused .*failed: the printer is on fire/,
    );
    expect(await why(orderId)).toMatch(/^ {2}sent by a client of the socket$/m);
    await client.close();
  });

  test("[K100] [K102] why names the running handler of a message and its start", async () => {
    const { millrace, json, client } = await busyKernel();
    const held = (await json("ls", "work")) as { id: string }[];
    expect(held).toMatchObject([{ entryPoint: "command", handler: "gate", type: "Gate.Hold", state: "running" }]);
    const { stdout } = await millrace("why", held[0]?.id ?? "");
    expect(stdout).toMatch(/^ {2}is in the command handler gate of Gate\.Hold, since \S+Z \(\d+ s\)$/m);
    await client.close();
  });

  test("[K42] why explains nodes that ran and nodes that did not, events and requests", async () => {
    const { millrace, json, orderId, client } = await busyKernel();
    const why = async (name: string) => (await millrace("why", name)).stdout;
    expect(await why("sum")).toMatch(
      /^computation sum {3}did not run: its inputs have not changed since its last run\.$/m,
    );
    expect(await why("sum")).toMatch(/^ {2}sum ran because of orders\n {2}orders was written by command Shop\.Order /m);
    expect(await why("average")).toMatch(/^computation average {3}did not run: it is not observed\. It never ran\.$/m);
    const [failed] = (await json("ls", "failures")) as { id: number }[];
    const { id } = failed as { id: number };
    expect(await why(String(id))).toMatch(
      /failed after one attempt: .*printer is on fire.*; put it back with: millrace requeue \d+/,
    );
    expect(await why(orderId)).toMatch(/^request \d+ Shop\.Order {3}done\n {2}answered \{"accepted":true\}/);
    const [waiting] = (await json("ls", "requests")) as { id: string }[];
    expect(await why((waiting as { id: string }).id)).toMatch(
      /^request \d+ Gate\.Hold {3}is being handled now, for the first time \(lease \d+\)\n {2}is in the command handler gate of Gate\.Hold, since .*\n {2}handled by gate at /,
    );
    expect(await millrace("why", "nothing-of-that-name")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^millrace: there is no event, .* node nothing-of-that-name; [^?]*\n$/),
    });
    expect((await millrace("why", "averge")).stderr).toMatch(/; did you mean average\? see "millrace ls"\n$/);
    await client.close();
  });

  test("[K43] graph draws events, requests and reads in three languages", async () => {
    const { millrace, json, client } = await busyKernel();
    expect((await millrace("graph")).stdout).toMatch(
      /^shop {3}takes orders\n {2}takes {2}command Shop\.Order\n {2}takes {2}command Shop\.Plan\n {2}emits {2}Order\.Placed -> audit\n {2}emits {2}Order\.Placed -> ledger$/m,
    );
    expect((await millrace("graph")).stdout).toMatch(/^printer {3}subscribes by itself\n {2}hears {2}Order\.Refused$/m);
    const mermaid = (await millrace("graph", "--format", "mermaid")).stdout;
    expect(mermaid).toMatch(/^flowchart LR\n/);
    const [, shop] = mermaid.match(/^ {2}(n\d+)\["shop"\]$/m) ?? [];
    const [, audit] = mermaid.match(/^ {2}(n\d+)\["audit"\]$/m) ?? [];
    expect(mermaid).toContain(`  ${shop} -->|"Order.Placed"| ${audit}\n`);
    expect(mermaid).toMatch(new RegExp(`^ {2}${shop} -->\\|"Order.Placed"\\| n\\d+\\n`, "m"));
    const dot = (await millrace("graph", "--format", "dot")).stdout;
    expect(dot).toMatch(/^digraph millrace \{\n[\s\S]*label="sum", shape=ellipse[\s\S]*\}\n$/);
    expect(await json("graph")).toMatchObject([{ capabilities: expect.any(Array), nodes: expect.any(Array) }]);
    expect((await millrace("graph", "--format", "svg")).code).toBe(2);
    await client.close();
  });
});

test("[K41] a timer is listed with its message, a schedule of an extension with its action", () => {
  const schedule = {
    extensionId: "clock",
    name: "tick",
    cron: "* * * * *",
    timezone: "Europe/Berlin",
    does: "task water",
  };
  const row = put(freeRow(schedule, 60_000));
  if (row.op !== "put") throw new Error("a row is put");
  expect(timers.cells(atItsSlot({ ...row, order: 1 }))).toEqual([
    ...["clock/tick", "1970-01-01T00:01:00.000Z", "schedule", "task water"],
    '{"cron":"* * * * *","timezone":"Europe/Berlin"}',
  ]);
});

describe("a stopped kernel's file", () => {
  test("[K41] documents are listed by space, prefix and number; receipts only by their prefix, deleted ones not at all", async () => {
    const { cwd, millrace, json } = setup();
    const host = systemHost();
    const store = await openStore(host, join(cwd, ".millrace", "kernel.db"));
    const replica = await Replica.open({ store, host, space: "kernel" });
    const transaction = replica.transaction();
    const names = ["a", "b/1", "b/2", "b_2", "gone", "receipt/x", "long"];
    for (const id of names) transaction.write({ scope: "space", id }, [], id === "long" ? "x".repeat(100) : { id });
    transaction.labels.push({ scope: "space", id: "a", path: ["id"], labels: ["hr"] });
    transaction.labels.push({ scope: "space", id: "b/1", path: ["id/1"], labels: ["hr"] });
    transaction.labels.push({ scope: "space", id: "b/2", path: [], labels: ["hr", "it"] });
    await transaction.commit().outcome;
    const removal = replica.transaction();
    removal.remove({ scope: "space", id: "gone" }, []);
    await removal.commit().outcome;
    await replica.close();
    await store.close();
    const ids = async (...args: string[]) =>
      (await json("ls", "documents", ...args)).map((one) => (one as { id: string }).id);
    expect(await ids()).toEqual(["a", "b/1", "b/2", "b_2", "long"]);
    expect(await ids("--prefix", "b/")).toEqual(["b/1", "b/2"]);
    expect(await ids("--prefix", "receipt")).toEqual(["receipt/x"]);
    expect(await ids("--limit", "2")).toEqual(["a", "b/1"]);
    expect(await ids("--prefix", "gone")).toEqual([]);
    const { stdout } = await millrace("ls", "documents");
    expect(stdout).toMatch(/^a +space +1 +\{"id":"a"\} +\/id labelled hr$/m);
    expect(stdout).toMatch(/^b\/1 .* \/id~11 labelled hr$/m);
    expect(stdout).toMatch(/^b\/2 .* all of it labelled hr, it$/m);
    expect(stdout).toMatch(/^long +space +1 +"x{58}…$/m);
    expect(await millrace("ls", "documents", "--space", "other")).toMatchObject({
      code: 2,
      stderr: 'millrace: there is no space "other"; there are: kernel\n',
    });
  });

  test("[K42] [K18] show, trace and why work on a stopped kernel's file", async () => {
    const { millrace, json, kernel, orderId, timerId, client } = await busyKernel();
    await client.close();
    await kernel.kill();
    expect(await json("show", "document", "orders")).toMatchObject([{ value: { value: [30, 12] } }]);
    expect(await json("show", orderId)).toMatchObject([
      { kind: "request", value: { receipt: { result: { accepted: true } } } },
    ]);
    expect(await json("show", "receipt", orderId)).toMatchObject([{ value: { result: { accepted: true } } }]);
    expect(await json("show", timerId)).toMatchObject([{ kind: "timer", value: { key: timerId } }]);
    const [failed] = (await json("ls", "failures")) as { id: number }[];
    const { id } = failed as { id: number };
    expect((await millrace("show", "event", String(id))).stdout).toMatch(/^event \d+\n\{\n {2}"id": \d+/);
    expect(await millrace("show", "nothing")).toMatchObject({ code: 1, stdout: "" });
    // Only the running kernel knows earlier values and runs.
    expect((await millrace("trace", orderId)).stdout.split("\n")[1]).toBe("├─ orders   [30,12]");
    expect((await millrace("why", orderId)).stdout).toMatch(/done\n {2}answered/);
    expect((await millrace("why", String(id))).stdout).toMatch(/failed after one attempt/);
    for (const kind of ["actors", "nodes", "types"]) expect((await millrace("ls", kind)).code, kind).toBe(3);
    for (const kind of ["events", "requests", "timers", "failures"])
      expect((await millrace("ls", kind)).code, kind).toBe(0);
    expect((await millrace("graph")).code).toBe(3);
  });
});

describe("computed values", () => {
  test("[K42] why shows the stored inputs of a stopped kernel's nodes", async () => {
    const { millrace, start } = setup();
    const kernel = await start();
    const client = await kernel.connect();
    await client.command("Shop.Order", { price: 30 });
    await client.close();
    expect(await kernel.stop()).toBe(0);
    expect((await millrace("why", "sum")).stdout).toMatch(
      /^node sum {3}is up to date: its inputs have not changed since its last run; no kernel is running\n {2}read orders as of commit \d+\n$/,
    );
  });
});

describe("doctor", () => {
  test("[K51] doctor reports runtime, settings with their origin, permissions, schema, leases and the journal, with problems", async () => {
    const { cwd, millrace, json, start } = setup();
    const kernel = await start();
    expect((await millrace("doctor")).stdout).toMatch(/^ok {4}leases +a kernel is running and holds \d+; /m);
    await kernel.kill();
    writeFileSync(join(cwd, "millrace.config.yaml"), "durability: process\n");
    const [well] = (await json("doctor")) as { ok: boolean; findings: { check: string; found: string }[] }[];
    expect(well?.findings.map(({ check }) => check)).toEqual(
      "runtime SQLite settings directory kernel schema permissions leases consumers receipts growth store self-check".split(
        " ",
      ),
    );
    const found = (check: string) => well?.findings.find((finding) => finding.check === check)?.found;
    expect(found("settings")).toMatch(
      /directory \.millrace \(default\) · durability process \(millrace\.config\.yaml:1:\d+\)/,
    );
    expect(found("leases")).toMatch(/^no kernel is running; \d+ events wait, 0 have failed$/);
    chmodSync(join(cwd, ".millrace", "kernel.db"), 0o644);
    writeFileSync(join(cwd, "millrace.config.yaml"), "durability: paper\n");
    const { code, stdout } = await millrace("doctor");
    expect(code).toBe(1);
    expect(stdout).toMatch(/^wrong permissions +mode 644: others may read or write it; run: chmod 600 /m);
    expect(stdout).toMatch(/^wrong settings +.*durability/m);
  });
});

describe("the command itself", () => {
  test("[K75] the bash script completes verbs and options; an unknown shell is refused with the known ones", async () => {
    const { millrace, cwd } = setup();
    const { stdout } = await millrace("completion", "bash");
    const asked = (words: string) =>
      `COMP_WORDS=(millrace ${words}); COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _millrace; echo "\${COMPREPLY[@]}"\n`;
    writeFileSync(join(cwd, "try.bash"), `${stdout}\n${asked("tr")}${asked("trace --j")}${asked("comp")}`);
    expect((await runProgram("bash", ["try.bash"], { cwd })).stdout).toBe("trace\n--json\ncompletion\n");
    for (const shell of ["zsh", "fish"]) expect((await millrace("completion", shell)).stdout).toMatch(/\btrace\b/);
    expect((await millrace("completion", "basj")).stderr).toContain("did you mean bash?");
  });

  test("[K77] the runtime is named: Node, Deno or Bun", () => {
    expect(runtimeName({ node: "24.21.0" })).toBe("node 24");
    expect(runtimeName({ node: "24.3.0", bun: "1.3.2" })).toBe("bun 1");
    expect(runtimeVersion({ node: "24.3.0", deno: "2.5.6" })).toBe("deno 2.5.6");
  });

  test("[K76] doctor reports whether a kernel runs, answers and is healthy", async () => {
    const { millrace, json, start } = setup();
    const kernel = await start();
    expect((await millrace("doctor")).stdout).toMatch(/^ok {4}kernel {6}a kernel is running, and its store works$/m);
    await kernel.stop();
    expect((await millrace("doctor")).stdout).toMatch(
      /^note {2}kernel {6}none is running in \.millrace; start one with/m,
    );
    const [report] = await json("doctor");
    expect(report).toMatchObject({
      ok: true,
      findings: expect.arrayContaining([expect.objectContaining({ isNote: true })]),
    });
  });

  test("[K77] graph shows the subscribers of events that no capability emits", async () => {
    const { millrace, start } = setup();
    const kernel = await start();
    expect((await millrace("graph")).stdout).toMatch(/^audit {3}hears of orders\n {2}hears {2}Order\.Placed$/m);
    expect((await millrace("graph", "--format", "mermaid")).stdout).toMatch(/"Order\.Refused"[\s\S]*-->\|"event"\|/);
    await kernel.stop();
  });
});
