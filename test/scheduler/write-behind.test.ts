import { describe, expect, test } from "#test";
import type { Computed } from "../../src/cells/computed.ts";
import { Space } from "../../src/cells/space.ts";
import type { CommitRequest } from "../../src/store/commit.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { rejected } from "../../src/store/rejection.ts";
import { setup } from "./restart-setup.ts";

/** How often each node's row is in the commits. */
function timesWritten(commits: readonly CommitRequest[]): Map<string, number> {
  const times = new Map<string, number>();
  for (const { node } of commits.flatMap(({ basis }) => basis)) times.set(node, (times.get(node) ?? 0) + 1);
  return times;
}

describe("writing behind", () => {
  test("[R34] a run makes no commit; its output and its row follow together, a while later", async () => {
    const at = setup();
    const { space, line } = await at.begin();
    const source = space.cell<number>("source");
    const double = space.computed("double", () => (source.get() ?? 0) * 2);
    source.set(4);
    double.sink(() => undefined);
    await at.host.advance(0);
    expect(line.arrived.map(({ patches }) => patches.map(({ id }) => id))).toEqual([["source"]]);
    await at.host.advance(100);
    const [, derived, ...more] = line.arrived;
    expect(more).toEqual([]);
    expect(derived?.patches).toEqual([
      { scope: "space", id: "double", operations: [{ op: "set", path: [], value: 8 }] },
    ]);
    expect(derived?.basis.map(({ node, inputs }) => [node, inputs.map(({ id }) => id)])).toEqual([
      ["double", ["source"]],
    ]);
  });

  test("[R34] 1,000 nodes updated 100 times while busy are written a few times each", async () => {
    const at = setup();
    const life = await at.begin();
    const { space } = life;
    const source = space.cell<number>("source");
    source.set(0);
    const nodes: Computed<number>[] = [];
    for (let n = 0; n < 1_000; n++) {
      const below = nodes[n - 1];
      nodes.push(
        space.computed(`n${n}`, () => (n % 10 === 0 || !below ? (source.get() ?? 0) : (below.get() ?? 0)) + 1),
      );
    }
    space.effect(() => nodes.map((node) => node.get()));
    for (let update = 1; update <= 100; update++) {
      source.set(update);
      space.flush();
      await at.host.advance(update % 20 === 0 ? 1 : 0);
    }
    await at.host.run(() => space.settled());
    expect(space.scheduler.getStats().runs).toBeGreaterThan(100_000);
    const times = timesWritten(life.derivedCommits);
    expect(times.size).toBe(1_000);
    expect(Math.max(...times.values())).toBeLessThanOrEqual(3);
    expect(space.scheduler.getStats().unwritten).toBe(0);
    // The last value is the stored one.
    const stored = await memoryStore({ host: at.host, disk: at.disk }).load("s", [{ scope: "space", id: "n9" }]);
    expect(stored.documents[0]?.value).toBe(110);
  });

  test("[R34] an equal value is not written again, only its inputs", async () => {
    const at = setup();
    const life = await at.begin();
    const source = life.space.cell<number>("source");
    source.set(1);
    life.space.computed("sign", () => Math.sign(source.get() ?? 0)).sink(() => undefined);
    await at.host.run(() => life.space.settled());
    source.set(2);
    await at.host.run(() => life.space.settled());
    const [first, second] = life.derivedCommits;
    expect([first?.patches.length, second?.patches.length]).toEqual([1, 0]);
  });

  test("[R34] of a wide value only the differences are written", async () => {
    const at = setup();
    const life = await at.begin();
    const source = life.space.cell<number>("source");
    source.set(1);
    const wide = () => Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`k${i}`, i === 7 ? source.get() : i]));
    life.space.computed("wide", wide).sink(() => undefined);
    await at.host.run(() => life.space.settled());
    source.set(2);
    await at.host.run(() => life.space.settled());
    expect(life.derivedCommits.at(-1)?.patches[0]?.operations).toEqual([{ op: "set", path: ["k7"], value: 2 }]);
  });

  test("[R34] a row waits for commits that its node has read from and that have no answer yet", async () => {
    const at = setup();
    const life = await at.begin();
    const { space, line } = life;
    const source = space.cell<number>("source");
    let arrive = () => {};
    const arrives = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    source.set(1);
    const next = space.computed("next", () => (source.get() ?? 0) + 1);
    space.computed("label", () => `next ${next.get()}`).sink(() => undefined);
    await at.host.run(() => space.settled());
    const before = life.derivedCommits.length;
    line.plan = ({ request }) => (request?.patches.some(({ id }) => id === "source") ? { answered: arrives } : {});
    source.set(2);
    await at.host.advance(1_000);
    // Neither the node that has read it nor the one that has read from that node.
    expect(life.derivedCommits.length).toBe(before);
    arrive();
    await at.host.advance(1_000);
    expect(timesWritten(life.derivedCommits.slice(before))).toEqual(
      new Map([
        ["next", 1],
        ["label", 1],
      ]),
    );
  });

  test("[R34] rows that the store cannot write are offered again, and reported when it refuses them for good", async () => {
    const at = setup();
    const life = await at.begin();
    const { space, line } = life;
    const errors: string[] = [];
    space.scheduler.onError((error) => errors.push(String(error)));
    const answers = ["failed", "stale", undefined, "refused"] as const;
    let asked = 0;
    line.plan = ({ request }) => {
      const reason = request && request.basis.length > 0 ? answers[asked++] : undefined;
      return reason ? { instead: rejected(reason, "io-error", "by the test") } : {};
    };
    const source = space.cell<number>("source");
    source.set(1);
    space.computed("next", () => (source.get() ?? 0) + 1).sink(() => undefined);
    await at.host.advance(5_000);
    expect([asked, errors, life.derivedCommits.length]).toEqual([3, [], 1]);
    source.set(2);
    await at.host.advance(5_000);
    expect(asked).toBe(4);
    expect(errors).toEqual(['Error: derived values of space "s" cannot be kept: by the test']);
  });

  test("[R34] [I1] another process that computes the same values does not disturb this one", async () => {
    const at = setup();
    const [here, there] = [await at.begin(), await at.begin()];
    const seen: unknown[] = [];
    for (const { space } of [here, there]) {
      const source = space.cell<number>("source");
      space.computed("next", () => (source.get() ?? 0) + 1).sink((value) => space === here.space && seen.push(value));
    }
    await at.host.advance(1_000);
    const source = here.space.cell<number>("source");
    for (let value = 1; value <= 5; value++) {
      source.set(value);
      await at.host.advance(value * 10);
    }
    await at.host.advance(1_000);
    expect(seen).toEqual([1, 2, 3, 4, 5, 6]);
    const life = await at.begin();
    const cell = life.space.cell<number>("source");
    const next = await life.space.restore(() => life.space.computed("next", () => (cell.get() ?? 0) + 1));
    expect(await at.host.run(() => next.pull())).toBe(6);
  });

  test("[I1] a value that others store in place of a computed one does not count as its result", async () => {
    const at = setup();
    const [here, there] = [await at.begin(), await at.begin()];
    const source = here.space.cell<number>("source");
    source.set(1);
    const seen: unknown[] = [];
    here.space.computed("next", () => (source.get() ?? 0) + 1).sink((value) => seen.push(value));
    await at.host.run(() => here.space.settled());
    there.space.cell<number>("next").set(99);
    await at.host.run(() => there.space.settled());
    await at.host.advance(1_000);
    source.set(5);
    await at.host.run(() => here.space.settled());
    expect(seen).toEqual([2, 6]);
    const stored = await memoryStore({ host: at.host, disk: at.disk }).load("s", [{ scope: "space", id: "next" }]);
    expect(stored.documents[0]?.value).toBe(6);
  });

  test("[R39] a value that is labelled, or computed from another space, is not stored", async () => {
    const at = setup();
    const life = await at.begin();
    const { scheduler } = life.space;
    const store = memoryStore({ host: at.host, disk: at.disk });
    const other = await Space.open({ store, host: at.host, name: "other", scheduler, persist: { version: "1" } });
    const far = other.cell<number>("far");
    const near = life.space.cell<number>("near");
    const secret = life.space.cell<number>("secret", undefined, { label: ["secret"] });
    far.set(1);
    near.set(2);
    secret.set(3);
    await at.host.advance(0);
    const nodes = [
      life.space.computed("both", () => (far.get() ?? 0) + (near.get() ?? 0)),
      life.space.computed("hidden", () => (secret.get() ?? 0) + 1),
      life.space.computed("plain", () => (near.get() ?? 0) + 1),
    ];
    for (const node of nodes) await at.host.run(() => node.pull());
    await at.host.run(() => life.space.settled());
    expect([...timesWritten(life.derivedCommits).keys()]).toEqual(["plain"]);
    const stored = await store.load("s", [
      { scope: "space", id: "both" },
      { scope: "space", id: "hidden" },
    ]);
    expect(stored.documents.map(({ value }) => value)).toEqual([undefined, undefined]);
  });
});
