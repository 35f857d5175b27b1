/**
 * Layer 4, without a shim: a file system of a few megabytes that is really full. Mounting one needs root; where that is
 * not permitted the injected ENOSPC of `io-errors.test.ts` stands alone, and this file says so.
 */
import { appendFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Kernel } from "../../src/kernel/kernel.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { dataSchema } from "../../src/loop/message-schema.ts";
import type { Message } from "../../src/message/envelope.ts";
import { type Store, StoreError } from "../../src/store/store.ts";
import { entryOf, type Published } from "./handling.ts";
import { mountSmallDisk } from "./small-disk.ts";
import { openStore } from "./store-setting.ts";

const DISK_BYTES = 4 * 1_048_576;
const BALLAST_BYTES = 2 * 1_048_576;
const EVENTS_MAX = 10_000;
/**
 * On a full disk the store can overwrite a log that was copied into the database, so a commit succeeds if it fits into
 * the log file. The text is larger than the room for the whole store, and therefore larger than its log.
 */
const LITTLE_ROOM_BYTES = 1_000_000;
const TEXT_LENGTH = 1_020_000;

const disk = mountSmallDisk(DISK_BYTES);

describe.skipIf(disk === undefined)("a disk that is really full", () => {
  test("[J1] a full disk refuses writes, serves reads, keeps acknowledged data, and accepts writes when there is room", async () => {
    const directory = disk ?? "";
    const ballast = join(directory, "ballast");
    writeFileSync(ballast, Buffer.alloc(BALLAST_BYTES));
    const store = await openStore({ path: join(directory, "full.db"), durability: "power" });

    const before = await appendUntilRefused(store, "before");
    expect(before.reason).toBe("store-full");
    expect(before.acknowledged.length).toBeGreaterThan(10);
    await expectAll(store, before.acknowledged);
    expect((await store.append([entryOf(eventOf("still", 0))])).kind).toBe("rejected");
    // A file that does not fit is refused by name, and does not prevent a later attempt.
    fill(ballast);
    const other = { path: join(directory, "other.db"), durability: "power" } as const;
    await expect(openStore(other)).rejects.toBeInstanceOf(StoreError);

    rmSync(ballast);
    await (await openStore(other)).close();
    const after = await appendUntilRefused(store, "after");
    expect(after.acknowledged.length).toBeGreaterThan(10);
    await expectAll(store, [...before.acknowledged, ...after.acknowledged]);
    await store.close();

    const again = await openStore({ path: join(directory, "full.db"), durability: "power" });
    await expectAll(again, [...before.acknowledged, ...after.acknowledged]);
    expect((await again.verify()).problems).toEqual([]);
    await again.close();
    console.log(`full disk: ${before.acknowledged.length} + ${after.acknowledged.length} acknowledged events, lost 0`);
  });

  test("[J214] an event whose handler finds the disk full is handled once there is room, and is no dead letter", async () => {
    const directory = disk ?? "";
    for (const file of readdirSync(directory)) rmSync(join(directory, file));
    const ballast = join(directory, "ballast");
    writeFileSync(ballast, Buffer.alloc(DISK_BYTES - LITTLE_ROOM_BYTES));
    const store = await openStore({ path: join(directory, "kernel.db"), durability: "power" });
    const begun = Promise.withResolvers<void>();
    const filled = Promise.withResolvers<void>();
    const refused = Promise.withResolvers<void>();
    const heard = Promise.withResolvers<number>();
    let calls = 0;
    const text = "x".repeat(TEXT_LENGTH);
    const passing = capability({
      description: "passes an event on",
      emits: { "Out.Told": dataSchema<string>(() => undefined, { type: "string" }) },
      on: {
        "In.Told": async (_data, { emit }) => {
          calls++;
          begun.resolve();
          await filled.promise;
          emit("Out.Told", text);
        },
        "Out.Told": () => heard.resolve(calls),
      },
    });
    const observe = ({ type }: Message) => {
      if (type === "Sys.RoutingError") refused.resolve();
    };
    const kernel = await Kernel.open({ store, capabilities: { passing }, observe });
    const id = await kernel.publish("In.Told", "go");
    await begun.promise;
    expect((await appendUntilRefused(store, "filler")).reason).toBe("store-full");
    fill(ballast);
    filled.resolve();
    await Promise.race([refused.promise, heard.promise.then(() => expect.unreachable("the disk was not full"))]);
    rmSync(ballast);
    expect(await heard.promise).toBeGreaterThan(1);
    await kernel.idle();
    const [row] = await store.query({ id, limit: 1 });
    expect([row?.status, await store.query({ status: "failed", limit: 1 })]).toEqual(["done", []]);
    await kernel.close();
  });
});

/** Takes every byte that is left on the disk of the file. */
function fill(path: string): void {
  for (const bytes of [65_536, 4_096, 1]) {
    try {
      for (;;) appendFileSync(path, Buffer.alloc(bytes));
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
    }
  }
}

function eventOf(name: string, n: number): Published {
  return { id: `${name}-${n}`, topic: "work", text: `${name} ${n} `.padEnd(4_000, "x") };
}

async function appendUntilRefused(store: Store, name: string): Promise<{ acknowledged: Published[]; reason: string }> {
  const acknowledged: Published[] = [];
  for (let n = 1; n < EVENTS_MAX; n++) {
    const event = eventOf(name, n);
    const outcome = await store.append([entryOf(event)]);
    if (outcome.kind === "rejected") return { acknowledged, reason: outcome.reason };
    acknowledged.push(event);
  }
  throw new Error(`${EVENTS_MAX} events of 4 kB fitted on a disk of ${DISK_BYTES} bytes`);
}

async function expectAll(store: Store, events: readonly Published[]): Promise<void> {
  const rows = await store.query({ limit: EVENTS_MAX });
  const texts = new Map(rows.map((row) => [row.message?.metadata.id, JSON.stringify(row.message?.data)]));
  for (const { id, text } of events) expect(texts.get(id)).toBe(JSON.stringify({ text }));
}
