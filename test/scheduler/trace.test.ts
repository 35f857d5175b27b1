import { describe, expect, test } from "#test";
import type { TraceTopic } from "../../src/scheduler/trace.ts";
import { rejected } from "../../src/store/rejection.ts";
import { setup } from "./scheduler-setup.ts";

const TOPICS: readonly TraceTopic[] = ["run", "invalidate", "gate", "commit", "send", "handled"];

const REFUSED = rejected("refused", "too-large", "told to refuse");

/** `a` is doubled, and the double is observed. */
async function doubled({ topics }: { topics: readonly TraceTopic[] }) {
  const parts = await setup();
  const { space, scheduler, quiet } = parts;
  const a = space.cell<number>("a");
  a.set(1);
  const double = space.computed("double", () => (a.get() ?? 0) * 2);
  const stop = double.sink(() => undefined, { throttleMs: 100 });
  await quiet();
  for (const topic of topics) scheduler.setTraceEnabled(topic, true);
  const told = (topic: TraceTopic) =>
    scheduler.getTrace(topic).map(({ node, kind, because, detail }) => [node, kind, because, detail]);
  return { ...parts, a, double, stop, told };
}

describe("the trace", () => {
  test("[R17] a topic that is off keeps no entry, before, after and beside another that is on", async () => {
    const { space, scheduler, a, quiet } = await doubled({ topics: ["invalidate"] });
    space.stream<number>("stream").handle((value) => a.set(value));
    scheduler.setTraceEnabled("invalidate", false);
    space.stream<number>("stream").send(5);
    a.set(7);
    await quiet();
    expect(TOPICS.map((topic) => scheduler.getTrace(topic).length)).toEqual([0, 0, 0, 0, 0, 0]);
  });

  test("[R17] invalidate tells which node has to run, and because of which change", async () => {
    const { a, space, told } = await doubled({ topics: ["invalidate"] });
    a.set(2);
    space.flush();
    expect(told("invalidate")).toEqual([
      ["double", "invalidated", ["a"], undefined],
      ["sink of double", "invalidated", ["double"], undefined],
    ]);
  });

  test("[R17] topic gate lists held nodes with the time and the causes, once for each wait", async () => {
    const { a, space, host, scheduler, double, told } = await doubled({ topics: ["gate"] });
    a.set(2);
    space.flush();
    a.set(3);
    space.flush();
    expect(told("gate")).toEqual([["sink of double", "gated", ["double"], "for 100 ms"]]);
    await host.advance(200);
    scheduler.setBreakpoint(double.node, true);
    a.set(4);
    space.flush();
    expect(told("gate").slice(1)).toEqual([["double", "gated", ["a"], "until it is let go"]]);
  });

  test("[R17] topic commit lists commits of plain code, nodes, handlers and others, and rollbacks", async () => {
    const { a, space, open, quiet, line, told } = await doubled({ topics: ["commit"] });
    const copy = space.cell<number>("copy");
    space.effect(() => copy.set(a.get() ?? 0), { id: "copies" });
    await quiet();
    expect(told("commit").map(([node, , , detail]) => [node, detail])).toEqual([["copies", "commit"]]);
    a.set(2);
    await quiet();
    space.stream<number>("stream").handle((value) => space.cell("handled").set(value));
    space.stream<number>("stream").send(1);
    await quiet();
    const there = await open();
    there.space.cell<number>("a").set(3);
    await quiet();
    line.plan = ({ method }) => (method === "commit" ? { instead: REFUSED } : {});
    space.cell("other").set(1);
    await quiet();
    const entries = told("commit").slice(1);
    expect(entries.map(([node, , , detail]) => [node, detail])).toEqual([
      ["s", "commit"],
      ["copies", "commit"],
      ["s", "commit"],
      ["s", "integrate"],
      ["copies", "commit"],
      ["s", "commit"],
      ["s", "revert"],
    ]);
    // Each by its own name; a rollback is of the one before.
    const names = entries.map(([, , because]) => String(because));
    expect([new Set(names).size, names.at(-1)]).toEqual([entries.length - 1, names.at(-2)]);
  });

  test("[R17] topics send and handled list each send with its sender and its end", async () => {
    const { space, a, quiet, told } = await doubled({ topics: ["send", "handled"] });
    const [first, second] = [space.stream<number>("first"), space.stream<number>("second")];
    first.handle((value) => void second.send(value + 1));
    second.handle(() => {
      throw new Error("no");
    });
    const { id } = first.send(1);
    space.effect(() => void (a.get() === 9 && first.send(9)), { id: "sends" });
    await quiet();
    const name = (stream: string) => `stream ${stream} of space "s"`;
    const [, followUp] = told("send");
    expect(told("send")).toEqual([
      [name("first"), "sent", [], id],
      [name("second"), "sent", [id], followUp?.[3]],
    ]);
    expect(told("handled").sort()).toEqual([
      [name("first"), "over", [id], "handled"],
      [name("second"), "over", [followUp?.[3]], "failed"],
    ]);
    a.set(9);
    await quiet();
    expect(told("send")[2]?.slice(0, 3)).toEqual([name("first"), "sent", ["sends"]]);
  });

  test("[R17] handled tells the ends of sends that were sent before it was on, once each", async () => {
    const { space, told, quiet, scheduler } = await doubled({ topics: [] });
    const [waits, drops] = [space.stream<number>("waits"), space.stream<number>("drops")];
    const asked = waits.send(1);
    void asked.outcome;
    const unasked = waits.send(2);
    const dropped = drops.send(3);
    await quiet();
    scheduler.setTraceEnabled("handled", true);
    waits.handle(() => {});
    await quiet();
    const name = (stream: string) => `stream ${stream} of space "s"`;
    expect(told("handled")).toEqual([
      [name("waits"), "over", [asked.id], "handled"],
      [name("waits"), "over", [unasked.id], "handled"],
    ]);
    scheduler.dispose();
    await quiet();
    expect(told("handled").slice(2)).toEqual([[name("drops"), "over", [dropped.id], "dropped"]]);
  });
});
