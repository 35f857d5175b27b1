/** Splices that move elements: later reads and writes below the array are at other places. */
import { describe, expect, test } from "#test";
import type { Transaction } from "../../../src/store/transaction.ts";
import { DOC, fate, quiet, setup } from "./replica-setup.ts";

const STALE = "stale read-moved";

/** Two processes with the same list; the first does not see the commits of the second. */
async function lists(list: readonly object[]) {
  const { here, there } = await setup();
  await here.put(DOC, [], { q: list as never });
  await there.replica.load([DOC]);
  const feed = here.hold("changesSince", "arrives");
  const change = (code: (transaction: Transaction) => void) => {
    const transaction = here.replica.transaction();
    code(transaction);
    return transaction.commit();
  };
  const stored = async () => (await here.line.store.load("s", [DOC])).documents[0]?.value;
  return { here, there, feed, change, stored };
}

describe("after a splice that moves elements", () => {
  test("[S54] [S75] a read below a spliced array depends on the element before the move, not on the one now at its index", async () => {
    const { there, change, stored } = await lists([{ n: 1 }, { n: 1 }]);
    await there.put(DOC, ["q", "1", "n"], 10);
    const moved = change((tx) => {
      tx.splice(DOC, ["q"], 0, 1, []);
      tx.write(DOC, ["q", "0", "n"], (tx.read(DOC, ["q", "0", "n"]) as number) + 1);
    });
    expect(fate(await moved.outcome)).toBe(STALE);
    expect(await stored()).toEqual({ q: [{ n: 1 }, { n: 10 }] });
  });

  test("[S54] after a splice no commit is accepted that does not fit: the document can be loaded", async () => {
    const { there, change, stored } = await lists([{ o: {} }, { o: {} }]);
    await there.put(DOC, ["q", "1", "o"], 5);
    const moved = change((tx) => {
      tx.splice(DOC, ["q"], 0, 1, []);
      tx.write(DOC, ["q", "0", "o", "x"], 1);
    });
    expect(fate(await moved.outcome)).toBe(STALE);
    expect(await stored()).toEqual({ q: [{ o: {} }, { o: 5 }] });
  });

  test("[S54] [S75] a commit that depends on another's splice also tracks the moved element", async () => {
    const { there, change, stored } = await lists([{ n: 1 }, { n: 1 }]);
    await there.put(DOC, ["q", "1", "n"], 10);
    const first = change((tx) => tx.splice(DOC, ["q"], 0, 1, []));
    const second = change((tx) => tx.write(DOC, ["q", "0", "n"], (tx.read(DOC, ["q", "0", "n"]) as number) + 1));
    expect([fate(await first.outcome), fate(await second.outcome)]).toEqual([STALE, "stale fell-with"]);
    expect(await stored()).toEqual({ q: [{ n: 1 }, { n: 10 }] });
  });

  test("[S40] [S54] a value that the transaction wrote and moved away does not hide the current one", async () => {
    const { here, there, feed } = await lists([{ n: 1 }, { n: 1 }]);
    const transaction = here.replica.transaction();
    transaction.write(DOC, ["q", "0"], { n: 5 });
    transaction.splice(DOC, ["q"], 0, 1, []);
    transaction.write(DOC, ["sum"], (transaction.read(DOC, ["q", "0"]) as { n: number }).n);
    await there.put(DOC, ["q", "1", "n"], 10);
    feed.open();
    await here.replica.catchUp();
    expect(fate(await transaction.commit().outcome)).toBe(STALE);
    expect(here.replica.peek(DOC)).toEqual({ q: [{ n: 1 }, { n: 10 }] });
  });

  test("[S44] [S50] a transaction leaves no trace if the container it wrote into was replaced meanwhile", async () => {
    const { here, there, feed } = await lists([{ o: {} }, { o: {} }]);
    const transaction = here.replica.transaction();
    transaction.splice(DOC, ["q"], 0, 1, []);
    transaction.write(DOC, ["q", "0", "o", "x"], 1);
    await there.put(DOC, ["q", "1", "o"], 5);
    feed.open();
    await here.replica.catchUp();
    expect(fate(await transaction.commit().outcome)).toBe(STALE);
    expect(here.replica.peek(DOC)).toEqual({ q: [{ o: {} }, { o: 5 }] });
  });

  test("[S54] a splice at the end moves no element and does not conflict with a write to an element", async () => {
    const { there, change, stored, feed } = await lists([{ n: 1 }]);
    await there.put(DOC, ["q", "0", "n"], 10);
    const added = change((tx) => tx.splice(DOC, ["q"], 1, 0, [{ n: 2 }]));
    feed.open();
    expect(fate(await added.outcome)).toBe("committed");
    await quiet();
    expect(await stored()).toEqual({ q: [{ n: 10 }, { n: 2 }] });
  });

  test("[S43] a hole among inserted elements is refused with its place", async () => {
    const { here } = await lists([]);
    const transaction = here.replica.transaction();
    expect(() => transaction.splice(DOC, ["q"], 0, 0, Object.assign(new Array(3), { 0: 1, 2: 2 }))).toThrow(
      /write doc \/q\/1/,
    );
    transaction.abort();
  });
});
