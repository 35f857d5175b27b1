/** Transactions without writes, and those that throw, also wait until their reads are confirmed. */
import { describe, expect, test } from "#test";
import { rejected } from "../../src/store/rejection.ts";
import { setup } from "../scheduler/scheduler-setup.ts";
import { Gate } from "../store/faulty-store.ts";

/** A cell with 1, confirmed; the next commit is held, and falls or stands. */
async function held(falls: boolean) {
  const site = await setup();
  const { space, host, line } = site;
  const stock = space.cell<number>("stock");
  stock.set(1);
  await host.run(() => space.settled());
  const other = space.cell<number>("other", 7);
  await host.run(() => other.pull());
  const gate = new Gate();
  let isFirst = true;
  line.plan = ({ method }) => {
    if (method !== "commit" || !isFirst) return {};
    isFirst = false;
    const answered = { answered: gate.opened };
    return falls ? { ...answered, instead: rejected("refused", "too-large", "not that") } : answered;
  };
  const first = space.transact(() => stock.set(0)).catch(() => "fell");
  const look = () => {
    if (stock.get() === 0) throw new Error("sold out");
    return "there is some";
  };
  return { ...site, stock, other, gate, first, look };
}

describe("a transaction without writes", () => {
  test("[R28] transact without writes returns when its reads are confirmed", async () => {
    const { space, host, stock, gate, look } = await held(false);
    const told: unknown[] = [];
    void space.transact(() => stock.get()).then((value) => told.push(value));
    void space.transact(look).catch((error: Error) => told.push(error.message));
    await host.advance(100);
    expect(told).toEqual([]);
    gate.open();
    await host.advance(100);
    expect(told).toEqual([0, "sold out"]);
  });

  test("[R28] runs again where that falls, whether it threw or not", async () => {
    const { space, host, stock, gate, first, look } = await held(true);
    const read = space.transact(() => stock.get());
    const looked = space.transact(look);
    await host.advance(100);
    gate.open();
    expect(await host.run(() => Promise.all([first, read, looked]))).toEqual(["fell", 1, "there is some"]);
  });

  test("[R28] [I10] transact without writes delivers its sends once, from its last run", async () => {
    const { space, host, stock, gate } = await held(true);
    const handled: number[] = [];
    const orders = space.stream<number>("orders");
    orders.handle((value) => void handled.push(value));
    const ordered = space.transact(() => void orders.send(stock.get() ?? -1));
    await host.advance(100);
    expect(handled).toEqual([]);
    gate.open();
    await host.run(() => ordered);
    await host.advance(100);
    expect(handled).toEqual([1]);
  });

  test("[R28] transact without writes returns at once if its reads are confirmed", async () => {
    const { space, host, other, gate } = await held(false);
    expect(await host.run(() => space.transact(() => other.get()))).toBe(7);
    gate.open();
    await host.advance(100);
  });
});
