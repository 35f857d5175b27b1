import { describe, expect, test } from "#test";
import { DOC, OTHER, quiet, setup } from "./replica-setup.ts";

const doc = (n: number) => ({ scope: "space", id: `doc ${n}` });

describe("a document that is held and not loaded", () => {
  test("[S215] holding an unloaded document does not create it; once loaded it stays until all have released it", async () => {
    const { here, there } = await setup({ residentDocumentsMax: 5 });
    await there.put(DOC, [], 1);
    const crowd = async () => {
      for (let n = 0; n < 20; n++) await here.replica.load([doc(n)]);
    };
    expect([here.replica.hold(DOC), here.replica.hold(DOC), here.replica.hold(OTHER)]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(here.replica.residentDocuments).toBe(0);
    await here.replica.load([DOC]);
    here.replica.letGo(OTHER);
    here.replica.letGo(DOC);
    await here.replica.load([OTHER]);
    await crowd();
    expect([here.replica.find(DOC)?.value, here.replica.find(OTHER)]).toEqual([1, undefined]);
    here.replica.letGo(DOC);
    await crowd();
    expect(here.replica.find(DOC)).toBe(undefined);
  });

  test("[S215] holding a loaded document returns it and keeps it", async () => {
    const { here } = await setup();
    await here.put(DOC, [], 1);
    const document = here.replica.find(DOC);
    expect(here.replica.hold(DOC)).toBe(document);
    expect(document?.observers).toBe(1);
    here.replica.letGo(DOC);
    expect(document?.observers).toBe(0);
  });

  test("[S217] a held document is loaded when it is first used if another session has written it, and not before", async () => {
    const { here, there } = await setup();
    here.replica.hold(DOC);
    here.replica.hold(OTHER);
    await there.put(DOC, [], 1);
    await here.replica.catchUp();
    expect(here.replica.residentDocuments).toBe(0);
    expect([here.replica.place(DOC).state, here.replica.place(OTHER).state]).toEqual(["loading", "absent"]);
    await here.replica.loadsSettled();
    expect(here.replica.find(DOC)?.value).toBe(1);
  });

  test("[S217] a held document is not loaded for writes from before it was held again", async () => {
    const { here, there } = await setup();
    here.replica.hold(DOC);
    await there.put(DOC, [], 1);
    await here.replica.catchUp();
    here.replica.letGo(DOC);
    here.replica.hold(DOC);
    expect(here.replica.place(DOC).state).toBe("absent");
  });

  test("[S68] a held document may have been written behind the feed's horizon", async () => {
    const { here, there } = await setup({ changesKept: 3 });
    here.replica.hold(OTHER);
    const feed = here.hold("changesSince", "arrives");
    for (let n = 1; n <= 10; n++) await there.put(DOC, [], n);
    feed.open();
    await here.replica.catchUp();
    await quiet();
    expect([here.replica.place(OTHER).state, here.replica.place(DOC).state]).toEqual(["loading", "absent"]);
    await here.replica.loadsSettled();
    here.replica.checkInvariants();
  });
});
