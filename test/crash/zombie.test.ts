/**
 * Layer 3, a process that was asleep: stopped past its lease (SIGSTOP), its work taken over and done by another
 * process, then continued (SIGCONT). By its memory it still owns the event; the store must refuse it.
 */
import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { Author, counterOf, countIn, effectIdOf, entryOf, handle, publishedIn, SPACE } from "./handling.ts";
import { exitOf, linesOf, requireShim, startProgram, temporaryDirectory, treeWith } from "./shim.ts";
import { laterHost, openStore, type StoreSetting } from "./store-setting.ts";
import type { ZombieClaim, ZombieReport } from "./zombie-program.ts";

/** Longer than any lease. */
const LATER_MS = 86_400_000;

const shim = requireShim();

describe.skipIf(shim.kind === "skipped")("a zombie", () => {
  test("[J3] [J23] a zombie process has no effect after its work was done by another process", async () => {
    const { store, zombie, lease } = await setup();
    expect(await store.recover()).toBe(1);
    await takeOver(store);
    expect(await zombie.awaken()).toEqual({
      settled: "lease-lost",
      commit: "permanent document-exists",
      renewed: false,
    });
    await expectHandledOnce(store, lease);
  });

  test("[J3] [J23] a zombie process has no effect while another process holds its work", async () => {
    const { store, zombie, lease } = await setup();
    expect(await store.recover()).toBe(1);
    const finish = await claimNow(store);
    expect(await zombie.awaken()).toEqual({ settled: "lease-lost", commit: "permanent lease-lost", renewed: false });
    await finish();
    await expectHandledOnce(store, lease);
  });

  test("[J3] without the check of claims, a zombie process settles the work of another", async () => {
    const { store, zombie } = await setup(treeWith("epoch-not-checked"));
    expect(await store.recover()).toBe(1);
    await claimNow(store);
    expect((await zombie.awaken()).settled).toBe("settled");
    await store.close();
  });
});

/** A stopped process that holds a claim, and a store on the same file; by the store's clock the lease has ended. */
async function setup(tree?: string) {
  if (shim.kind === "skipped") throw new Error("the test should have been skipped");
  const directory = temporaryDirectory("zombie");
  const setting: StoreSetting = { path: join(directory, "zombie.db"), durability: "power" };
  const store = await openStore(setting, laterHost(LATER_MS));
  await store.append([entryOf({ id: "the-event", topic: "work", text: "do it once" })]);
  const child = startProgram({
    library: shim.library,
    program: "zombie-program.ts",
    args: [JSON.stringify(setting)],
    directory,
    tree,
  });
  const zombie = new Zombie(child);
  const { event, lease } = await zombie.next<ZombieClaim>();
  expect(event).toBe("the-event");
  child.kill("SIGSTOP");
  return { store, zombie, lease };
}

class Zombie {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(child: ChildProcess) {
    this.#child = child;
    this.#lines = linesOf(child)[Symbol.asyncIterator]();
  }

  async next<T>(): Promise<T> {
    const line = await this.#lines.next();
    if (line.done) throw new Error("the zombie ended without a word");
    return JSON.parse(line.value) as T;
  }

  /** Continues the process, and returns its report. */
  async awaken(): Promise<ZombieReport> {
    this.#child.stdin?.end("go\n");
    this.#child.kill("SIGCONT");
    const report = await this.next<ZombieReport>();
    expect((await exitOf(this.#child)).code).toBe(0);
    return report;
  }
}

/** Claims the event in this process; the returned function handles it. */
async function claimNow(store: Store): Promise<() => Promise<void>> {
  const { lease } = await store.openLease(60_000);
  const [claim] = await store.claim({ lease, limit: 1, kinds: ["event"] });
  if (!claim) throw new Error("recovery gave the event to nobody");
  return async () => {
    const outcome = await handle(store, new Author("heir"), claim, publishedIn(claim.row), 0);
    expect(outcome.kind).toBe("committed");
  };
}

async function takeOver(store: Store): Promise<void> {
  const finish = await claimNow(store);
  await finish();
}

async function expectHandledOnce(store: Store, zombieLease: number): Promise<void> {
  const [row] = await store.query({ messageId: "the-event", limit: 1 });
  expect(row?.status).toBe("done");
  expect(row?.lease).not.toBe(zombieLease);
  expect(await store.query({ messageId: effectIdOf("the-event"), limit: 10 })).toHaveLength(1);
  const { documents } = await store.load(SPACE, [counterOf(0)]);
  expect(countIn(documents[0]?.value)).toBe(1);
  expect((await store.verify()).problems).toEqual([]);
  await store.close();
}
