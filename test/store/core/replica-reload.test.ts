import { describe, expect, test } from "#test";
import { DOC, fate, OTHER, quiet, setup } from "./replica-setup.ts";

describe("a reload behind the feed's horizon", () => {
  test("[S65] [S68] shows own commits that were answered and wait for the feed once, and those on their way upon them", async () => {
    const { here, there } = await setup({ changesKept: 3 });
    await here.put(DOC, [], { n: 0 });
    await here.put(OTHER, [], ["a"]);
    await there.replica.load([DOC]);
    const feed = here.hold("changesSince", "arrives");
    for (let n = 1; n <= 10; n++) await there.put(DOC, ["n"], n);
    const append = (item: string, at: number) => {
      const transaction = here.replica.transaction();
      transaction.splice(OTHER, [], at, 0, [item]);
      return transaction.commit();
    };
    const answered = append("answered", 1);
    await quiet();
    const commits = here.hold("commit", "arrives");
    const sent = append("on its way", 2);
    feed.open();
    expect(fate(await answered.outcome)).toBe("committed");
    await here.replica.catchUp();
    here.replica.checkInvariants();
    expect(here.replica.peek(OTHER)).toEqual(["a", "answered", "on its way"]);
    commits.open();
    // Nobody can tell any more what it had seen.
    expect(fate(await sent.outcome)).toBe("stale read-moved");
    expect(here.replica.peek(OTHER)).toEqual(["a", "answered"]);
    await there.replica.load([OTHER]);
    expect(there.replica.peek(OTHER)).toEqual(["a", "answered"]);
  });
});
