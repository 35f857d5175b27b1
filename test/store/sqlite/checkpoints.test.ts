/** The write-ahead log stays short: the thread that copies it, its length, and the end of that thread. */
import { execFile } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Worker } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import { resolveOptions, type SqliteTuning } from "../../../src/store/sqlite/options.ts";
import { openReader } from "../../../src/store/sqlite/reader.ts";
import { append } from "../conformance/requests.ts";
import { CHECKPOINT_PAGES, fill, freshEntries } from "./long-log.ts";
import { startProgram } from "./program.ts";
import { StoreFile } from "./store-file.ts";

/** A frame of the log: a page with its head. */
const FRAME_BYTES = 4_096 + 24;
/** Frames that a batch of `fill` adds. */
const BATCH_FRAMES_MIN = 20;
const BATCH_FRAMES_MAX = 40;
/** Four times as long, and what a batch adds: one more may be on its way while the thread is started. */
const LOG_BYTES_MAX = logBytesMax(CHECKPOINT_PAGES);
/** Some thousand frames. */
const BATCHES = 60;
/** Of each of two processes: some ten thousand frames together. */
const ROUNDS = 200;

describe("a long log", () => {
  test("[S107] [S193] a thread copies the log, which stays short under constant load", async () => {
    await using at = await setup();
    await fill(at.store, BATCHES);
    expect(at.threads).toHaveLength(1);
    expect(at.logBytes()).toBeLessThan(LOG_BYTES_MAX);
    expect(await at.store.verify()).toMatchObject({ ok: true, problems: [] });
    await at.store.close();
    // All of it is in the database, and the thread has let go of it.
    expect(existsSync(`${at.file.path}-wal`)).toBe(false);
  });

  test("[S193] the log stays as short if one batch is longer than a copy", async () => {
    await using at = await setup({ checkpointPages: 10 });
    await fill(at.store, BATCHES);
    expect(at.logBytes()).toBeLessThan(logBytesMax(10));
  });

  test("[S194] without a thread the log is copied between batches and stays as short", async () => {
    await using at = await setup({ checkpointThread: false });
    await fill(at.store, BATCHES);
    expect(at.threads).toHaveLength(0);
    expect(at.logBytes()).toBeLessThan(LOG_BYTES_MAX);
  });

  test("[S194] a store with a short log has no thread", async () => {
    await using at = await setup();
    await append(at.store, ...freshEntries(10));
    await at.store.close();
    expect(at.threads).toHaveLength(0);
  });

  test("[S194] the log stays short after the thread has died, also in the middle of a copy", async () => {
    await using at = await setup();
    while (at.threads.length === 0) await fill(at.store, 1);
    // A copy is under way, or asked for, while the thread starts.
    await at.threads[0]!.terminate();
    await fill(at.store, BATCHES);
    expect(at.threads).toHaveLength(1);
    expect(at.logBytes()).toBeLessThan(LOG_BYTES_MAX);
    expect(await at.store.verify()).toMatchObject({ ok: true, problems: [] });
  });

  test("[S194] the log restarts after each complete copy when the thread has died after the log was long", async () => {
    await using at = await setup();
    while (at.threads.length === 0) await fill(at.store, 1);
    // The thread takes time to start, so the log mostly reaches the length that ends it.
    await fill(at.store, 10);
    await at.threads[0]!.terminate();
    await fill(at.store, BATCHES);
    expect(at.logBytes()).toBeLessThan(LOG_BYTES_MAX);
  });

  test("[S193] the log keeps the pages that a reader needs, and no write waits for the reader", async () => {
    await using at = await setup();
    await fill(at.store, 1);
    {
      await using reader = openReader(resolveOptions({ path: at.file.path }));
      const count = () => reader.connection.prepare("SELECT count(*) AS n FROM event_journal").get()?.["n"];
      const before = count();
      await fill(at.store, BATCHES);
      expect(count()).toBe(before);
      expect(at.logBytes()).toBeGreaterThan(LOG_BYTES_MAX);
    }
    await fill(at.store, BATCHES);
    const grown = at.logBytes();
    await fill(at.store, BATCHES);
    // The file does not shrink, but what is written begins anew at its start.
    expect(at.logBytes()).toBe(grown);
  });

  test("[S108] the log of two processes that write constantly restarts", async () => {
    await using at = await setup();
    await using one = startProgram("filler", { path: at.file.path, rounds: ROUNDS });
    await using two = startProgram("filler", { path: at.file.path, rounds: ROUNDS });
    for (const word of ["ready", "done"]) {
      expect([await one.next(), await two.next()]).toEqual([word, word]);
      one.tell("go on");
      two.tell("go on");
    }
    // The file is as long as the log ever was. A log that never begins anew holds every frame; one that does is far
    // shorter, also where a reader without a core delayed several turns of the log.
    expect(at.logBytes()).toBeLessThan((2 * ROUNDS * BATCH_FRAMES_MIN * FRAME_BYTES) / 2);
    expect(await at.store.verify()).toMatchObject({ ok: true, problems: [] });
  });

  test("[S194] the copying thread does not keep an idle process alive", async () => {
    await using file = new StoreFile();
    const program = join(import.meta.dirname, "leaving-program.ts");
    // It neither closes the store nor exits by itself, so it comes to its end when nothing is left that it waits for.
    const { stdout } = await promisify(execFile)(process.execPath, [program, file.path]);
    expect(Number(stdout)).toBeLessThan(LOG_BYTES_MAX);
  });
});

function logBytesMax(checkpointPages: number): number {
  return (4 * checkpointPages + 2 * BATCH_FRAMES_MAX) * FRAME_BYTES;
}

async function setup(tuning: Partial<SqliteTuning> = {}) {
  const file = new StoreFile();
  const threads: Worker[] = [];
  const notice = (message: unknown): void => void threads.push((message as { worker: Worker }).worker);
  subscribe("worker_threads", notice);
  const store = await file.open({ tuning: { checkpointPages: CHECKPOINT_PAGES, ...tuning } });
  return {
    file,
    store,
    threads,
    logBytes: () => statSync(`${file.path}-wal`).size,
    async [Symbol.asyncDispose]() {
      unsubscribe("worker_threads", notice);
      await file[Symbol.asyncDispose]();
    },
  };
}
