import { describe, expect, test } from "#test";
import { ADDRESSES_UNREAD_MAX } from "../../src/limits.ts";
import { setup } from "../scheduler/scheduler-setup.ts";

describe("a stream at a place below the root of its document", () => {
  test("[R45] keeps its handler when the addresses around it are forgotten", async () => {
    const { space, scheduler, quiet } = await setup();
    const doc = space.cell<Record<string, number>>("doc");
    doc.set({});
    const place = doc.key("orders");
    scheduler.parts.events.addHandler((value) => value, place.address, { name: "takes orders" });
    const unread = doc.key("unread").address;
    for (let i = 0; i <= 2 * ADDRESSES_UNREAD_MAX; i++) {
      doc.key(`k ${i}`).get();
      if (i % 100 === 0) await quiet();
    }
    expect(unread.gone).toBe(true);
    const sent = scheduler.queueEvent(doc.key("orders").address, 1);
    await quiet();
    expect(await sent.outcome).toMatchObject({ kind: "handled", result: 1 });
    scheduler.checkInvariants();
  });
});
