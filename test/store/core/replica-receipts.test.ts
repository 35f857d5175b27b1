import { describe, expect, test } from "#test";
import type { Json } from "../../../src/message/json.ts";
import { Receipt } from "../../../src/store/receipt.ts";
import { rejected } from "../../../src/store/rejection.ts";
import { pullStored } from "../../../src/store/stored-value.ts";
import { DOC, fate, quiet, refusal, type Site, setup } from "./replica-setup.ts";

const RECEIPT = { scope: "space", id: "receipt/1" };

/** A transaction that leaves a receipt, on its way. */
function leave({ replica }: Site, value: Json, id = RECEIPT.id) {
  const transaction = replica.transaction();
  transaction.write(DOC, [], value);
  transaction.leave(new Receipt({ ...RECEIPT, id }, value));
  return transaction.commit();
}

describe("receipts", () => {
  test("[S77] a receipt goes to the store with its commit, must be absent, and is no document in memory", async () => {
    const { here, there } = await setup();
    expect(fate(await leave(here, { by: "here" }).outcome)).toBe("committed");
    expect(here.told()).toEqual([["commit", "doc", undefined, { by: "here" }]]);
    expect(here.replica.residentDocuments).toBe(1);
    expect(fate(await leave(there, { by: "there" }).outcome)).toBe("permanent document-exists");
    expect(fate(await leave(here, { by: "here again" }).outcome)).toBe("permanent document-exists");
    await there.replica.load([RECEIPT, DOC]);
    await here.replica.load([RECEIPT]);
    expect([here, there].map(({ replica }) => replica.peek(RECEIPT))).toEqual([{ by: "here" }, { by: "here" }]);
    expect(there.replica.peek(DOC)).toEqual({ by: "here" });
  });

  test("[S77] a commit with only a receipt reaches the store once", async () => {
    const { here } = await setup();
    const only = () => {
      const transaction = here.replica.transaction();
      transaction.leave(new Receipt(RECEIPT, {}));
      return transaction.commit().outcome;
    };
    expect([fate(await only()), fate(await only())]).toEqual(["committed", "permanent document-exists"]);
  });

  test("[S208] a read of a receipt while its commit is pending gets it and depends on that commit", async () => {
    const { here } = await setup();
    const gate = here.hold("commit");
    const first = leave(here, 1);
    expect(here.replica.peek(RECEIPT)).toBe(1);
    const reader = here.replica.transaction();
    reader.write(DOC, [], { saw: reader.read(RECEIPT) as Json });
    const second = reader.commit();
    here.replica.checkInvariants();
    gate.open();
    expect([fate(await first.outcome), fate(await second.outcome)]).toEqual(["committed", "committed"]);
    expect(here.arrived.at(-1)?.dependsOn).toEqual([first.localSequence]);
    await quiet();
    expect(here.replica.peek(RECEIPT)).toBe(1);
    here.replica.checkInvariants();
  });

  test("[S208] a requested receipt is rolled back with its commit, and that is announced", async () => {
    const { here } = await setup();
    const gate = here.hold("commit");
    here.next("commit", { instead: rejected("stale", "read-moved", "moved") });
    const commit = leave(here, 1);
    expect(here.replica.peek(RECEIPT)).toBe(1);
    here.told();
    gate.open();
    expect(fate(await commit.outcome)).toBe("stale read-moved");
    expect(here.told()).toContainEqual(["revert", "receipt/1", 1, undefined]);
    await quiet();
    expect(here.replica.peek(RECEIPT)).toBeUndefined();
    here.replica.checkInvariants();
  });

  test("[S77] an observer of an absent receipt is notified of it, and its earlier read is stale", async () => {
    const { here } = await setup();
    await here.replica.load([RECEIPT, DOC]);
    const reader = here.replica.transaction();
    expect(reader.read(RECEIPT)).toBeUndefined();
    const { outcome } = leave(here, 1);
    expect(here.told()).toContainEqual(["commit", "receipt/1", undefined, 1]);
    reader.write({ scope: "space", id: "x" }, [], 1);
    expect(fate(await reader.commit().outcome)).toBe("stale read-moved");
    expect(fate(await outcome)).toBe("committed");
    here.replica.checkInvariants();
  });

  test("[S77] a read of a receipt that is not in memory is stale", async () => {
    const { here } = await setup();
    await leave(here, 1).outcome;
    const gate = here.hold("load");
    const reader = here.replica.transaction();
    expect(reader.read(RECEIPT)).toBeUndefined();
    reader.write(DOC, [], "there is no receipt");
    expect(fate(await reader.commit().outcome)).toBe("stale read-moved");
    gate.open();
  });

  test("[S209] the stored receipt is not the one of a pending commit", async () => {
    const { here, there } = await setup();
    await leave(there, "first").outcome;
    const gate = here.hold("commit");
    const commits = [leave(here, "second"), leave(here, "third")];
    const stored = pullStored(here.replica, RECEIPT);
    expect(here.replica.peek(RECEIPT)).toBe("third");
    gate.open();
    expect(await stored).toBe("first");
    expect(await Promise.all(commits.map(async ({ outcome }) => (await outcome).kind))).toEqual([
      "rejected",
      "rejected",
    ]);
    here.replica.checkInvariants();
  });

  test("[S77] a receipt needs the name of one", () => {
    expect(refusal(() => new Receipt({ scope: "space", id: "quittance" }, {}))).toContain(
      '"quittance" is not the name of a receipt',
    );
  });
});
