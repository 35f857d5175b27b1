import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import { LabelError } from "../../src/store/label.ts";
import { type Life, setup } from "../scheduler/restart-setup.ts";

/** A chain of two computations over one cell, and one beside it. */
function payroll(life: Life, options: { label?: readonly string[] } = {}) {
  const { space } = life;
  const salaries = space.cell<Record<string, number>>("salaries", undefined, options);
  const names = space.cell<string[]>("names");
  const computed = <T>(name: string, compute: () => T) =>
    space.computed(name, life.noting(name, compute), { fingerprint: name });
  const sum = computed("sum", () => Object.values(salaries.get() ?? {}).reduce((a, b) => a + b, 0));
  const line = computed("line", () => `sum ${sum.get()}`);
  const count = computed("count", () => (names.get() ?? []).length);
  return { salaries, sum, line, count };
}

async function firstLife(at: ReturnType<typeof setup>) {
  const life = await at.begin();
  life.space.cell("salaries").set({ ada: 1, bob: 2 });
  life.space.cell("names").set(["ada", "bob"]);
  const { line, count } = payroll(life);
  await at.host.run(() => Promise.all([line.pull(), count.pull()]));
  await at.host.run(() => life.space.settled());
  life.kill();
}

/** A process in which the nodes are not, as a tool or another program is one. */
async function between(at: ReturnType<typeof setup>, act: (life: Life) => Promise<unknown>): Promise<void> {
  const life = await at.begin();
  await at.host.run(() => act(life));
  await at.host.run(() => life.space.settled());
  life.kill();
}

/** The values that an effect without clearance reads. */
function asStranger(life: Life, cell: Cell<unknown>): unknown[] {
  const seen: unknown[] = [];
  life.space.effect(() => void seen.push(cell.get()), { clearance: [] });
  life.space.scheduler.onError((error) => seen.push(error instanceof LabelError ? error.code : error));
  return seen;
}

describe("labels over a restart", () => {
  test("[F10] a label added while no process ran labels the values computed from its place, and no other node runs", async () => {
    const at = setup();
    await firstLife(at);
    await between(at, ({ space }) => space.cell("salaries").label(["hr"]));
    const life = await at.begin();
    const { line, sum, count } = await life.space.restore(() => payroll(life));
    const [seen, counted] = [asStranger(life, line), asStranger(life, count)];
    await at.host.advance(1_000);
    expect(seen).not.toContain("sum 3");
    expect(seen).toContain("LABEL_REFUSED");
    expect(counted).toContain(2);
    expect([life.space.labelsOf(sum), life.space.labelsOf(line), life.space.labelsOf(count)]).toEqual([
      ["hr"],
      ["hr"],
      [],
    ]);
    expect(life.takeRan()).toEqual(["sum", "line"]);
    await expect(at.host.run(() => line.pull({ clearance: [] }))).rejects.toMatchObject({ code: "LABEL_REFUSED" });
    life.space.scheduler.checkInvariants();
  });

  test("[F10] a label that only the next process declares labels the computed values, and no other node runs", async () => {
    const at = setup();
    await firstLife(at);
    const life = await at.begin();
    const { line } = await life.space.restore(() => payroll(life, { label: ["hr"] }));
    const seen = asStranger(life, line);
    await at.host.advance(1_000);
    expect(seen).not.toContain("sum 3");
    expect(seen).toContain("LABEL_REFUSED");
    expect(life.space.labelsOf(line)).toEqual(["hr"]);
  });

  test("[F10] values computed from a labelled place leave the store, and return when the label is removed", async () => {
    const at = setup();
    await firstLife(at);
    await between(at, ({ space }) => space.cell("salaries").label(["hr"]));
    await between(at, async (life) => {
      const { line } = await life.space.restore(() => payroll(life));
      await line.pull();
    });
    await between(at, async (life) => {
      const [sum, line] = [life.space.cell("sum"), life.space.cell("line")];
      expect(await Promise.all([sum.pull(), line.pull()])).toEqual([undefined, undefined]);
      await life.space.declassify(life.space.cell("salaries"), { remove: ["hr"], reason: "published" });
    });
    const life = await at.begin();
    const { line } = await life.space.restore(() => payroll(life));
    const seen = asStranger(life, line);
    await at.host.advance(1_000);
    expect(seen.at(-1)).toBe("sum 3");
  });

  test("[F10] a label on another place of the document runs no node", async () => {
    const at = setup();
    const first = await at.begin();
    first.space.cell("person").set({ name: "ada", salary: 1 });
    const greeting = (life: Life) =>
      life.space.computed(
        "greeting",
        life.noting("greeting", () => `hello ${life.space.cell<{ name: string }>("person").key("name").get()}`),
        { fingerprint: "greeting" },
      );
    await at.host.run(() => greeting(first).pull());
    await at.host.run(() => first.space.settled());
    first.kill();
    await between(at, ({ space }) => space.cell<{ salary: number }>("person").key("salary").label(["hr"]));
    const life = await at.begin();
    const again = await life.space.restore(() => greeting(life));
    const seen = asStranger(life, again);
    await at.host.advance(1_000);
    expect(seen.at(-1)).toBe("hello ada");
    expect(life.takeRan()).toEqual([]);
  });
});
