/** Commits that are stale because of others' writes, while the feed cannot be read. */
import { describe, expect, test } from "#test";
import { FEED_RETRY_MAX_MS } from "../../src/limits.ts";
import { setup } from "./scheduler-setup.ts";

describe("a feed that cannot be read for a while", () => {
  async function behind() {
    const { space, host, open, line, quiet, scheduler } = await setup();
    const other = await open();
    const [a, b, trigger] = [space.cell<number>("a"), space.cell<number>("b"), space.cell<number>("trigger")];
    a.set(1);
    trigger.set(0);
    await quiet();
    const theirs = other.space.cell<number>("a");
    await theirs.pull();
    space.effect(() => b.set((a.get() ?? 0) * 10 + (trigger.get() ?? 0)));
    await quiet();
    const feed = { fails: true };
    line.plan = ({ method }) => (method === "changesSince" && feed.fails ? { instead: new Error("no feed") } : {});
    theirs.set(2);
    await quiet();
    expect(b.get()).toBe(10);
    return { host, trigger, b, feed, scheduler };
  }

  test("[I1] [S67] writes of others arrive when a failing feed can be read again, even if they are the last ones", async () => {
    const { host, b, feed, scheduler } = await behind();
    await host.advance(5_000);
    expect(b.get()).toBe(10);
    feed.fails = false;
    await host.advance(FEED_RETRY_MAX_MS);
    expect(b.get()).toBe(20);
    scheduler.checkInvariants();
  });

  test("[R11] a node with a commit that is stale meanwhile runs again, and its writes are confirmed in the end", async () => {
    const { host, trigger, b, feed, scheduler } = await behind();
    trigger.set(1);
    await host.advance(5_000);
    feed.fails = false;
    await host.advance(5_000);
    expect(b.get()).toBe(21);
    scheduler.checkInvariants();
  });
});
