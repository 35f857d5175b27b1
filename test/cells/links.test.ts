import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { Calls, setup } from "../scheduler/scheduler-setup.ts";

describe("links", () => {
  test("[R25] a read follows links anywhere on its way; a write follows those above its place", async () => {
    const { space } = await setup();
    const ada = space.cell<{ name: string }>("ada");
    ada.set({ name: "Ada" });
    const doc = space.cell<{ author: { name: string } }>("doc");
    space.cell("doc").set({ author: ada.asLink() });
    expect(doc.key("author").get()).toEqual({ name: "Ada" });
    expect(doc.key("author").key("name").get()).toBe("Ada");
    doc.key("author").key("name").set("Ada L.");
    expect(ada.get()).toEqual({ name: "Ada L." });
    doc.key("author").set({ name: "other" });
    expect(ada.get()).toEqual({ name: "Ada L." });
    expect(doc.get()).toEqual({ author: { name: "other" } });
  });

  test("[R25] a read through a link does not depend on the link's siblings", async () => {
    const { space, scheduler } = await setup();
    const target = space.cell<{ x: number; y: number }>("target");
    target.set({ x: 1, y: 1 });
    const doc = space.cell<{ link: unknown; note: string }>("doc");
    doc.set({ link: target.asLink(), note: "a" });
    const seen = new Calls();
    space.cell<{ link: { x: number } }>("doc").key("link").key("x").sink(seen.note, {});
    space.flush();
    doc.key("note").set("b");
    target.key("y").set(2);
    space.flush();
    target.key("x").set(5);
    space.flush();
    expect(seen.take()).toEqual([1, 5]);
    scheduler.checkInvariants();
  });

  test("[R25] links that go around in a circle are an error that says so", async () => {
    const { space } = await setup();
    const [a, b] = [space.cell("a"), space.cell("b")];
    a.set(b.asLink());
    b.set(a.asLink());
    expect(() => a.get()).toThrow("go around in a circle");
    expect(() => a.get()).toThrow(expect.objectContaining({ code: "LINK_CIRCLE" }));
    expect(() => space.begin().get(a)).toThrow(expect.objectContaining({ code: "LINK_CIRCLE" }));
    const c = space.computed("c", () => a.get());
    c.sink(() => undefined);
    space.flush();
    expect(String(c.error)).toContain("go around in a circle");
    b.set(5);
    space.flush();
    expect(c.get()).toBe(5);
  });

  test("[R25] a link may lead to another open space; a link to a closed space throws an error with the remedy", async () => {
    const { space, host } = await setup();
    const store = memoryStore({ host });
    const t = await Space.open({ store, host, name: "t", scheduler: space.scheduler });
    const far = t.cell<number>("far");
    far.set(1);
    const neighbours = new Map([["t", t.replica("t")]]);
    const u = await Space.open({ store, host, name: "u", scheduler: space.scheduler, neighbours });
    const link = u.cell<unknown>("link");
    link.set(far.asLink());
    const seen = new Calls();
    link.sink(seen.note);
    space.flush();
    far.set(2);
    space.flush();
    expect(seen.take()).toEqual([1, 2]);
    space.cell("astray").set(far.asLink());
    expect(() => space.cell("astray").get()).toThrow('leads to space "t", which is not open here');
  });

  test("[R26] ifElse shows one of two cells and does not read the other", async () => {
    const { space } = await setup();
    const [flag, yes, no] = [space.cell<boolean>("flag"), space.cell<string>("yes"), space.cell<string>("no")];
    flag.set(true);
    yes.set("y");
    no.set("n");
    const chosen = space.ifElse("chosen", flag, yes, no);
    const seen = new Calls();
    chosen.sink(seen.note);
    space.flush();
    no.set("n2");
    space.flush();
    expect(seen.take()).toEqual(["y"]);
    flag.set(false);
    space.flush();
    yes.set("y2");
    space.flush();
    no.set("n3");
    space.flush();
    expect(seen.take()).toEqual(["n2", "n3"]);
  });
});
