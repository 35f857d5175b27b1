import { describe, expect, test } from "#test";
import {
  DOCUMENT_BYTES_MAX,
  LIST_DOCUMENTS_MAX,
  MEMORY_BYTES_MAX,
  MEMORY_KEYS_MAX,
  MEMORY_UNIT_BYTES,
} from "../../src/limits.ts";
import { memoryCapability } from "../../src/loop/memory.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Json } from "../../src/message/json.ts";
import { setup as setupSpace } from "../scheduler/scheduler-setup.ts";
import { command, query, setup } from "./loop-setup.ts";

async function memory() {
  const { space, host, line } = await setupSpace();
  const { store } = line;
  const { loop, settle } = await setup({ memory: memoryCapability(space) }, { host });
  let asked = 0;
  const ask = async (kind: "command" | "query", type: string, data: Json) => {
    const make = kind === "command" ? command : query;
    return (await host.run(() => loop.request(make(type, `${type} ${++asked}`, data)))).data;
  };
  const set = (key: string, value: Json) => ask("command", "Memory.Set", { key, value });
  const remove = (key: string) => ask("command", "Memory.Delete", { key });
  const list = (data: Json = null) => ask("query", "Memory.List", data);
  const get = (key: string) => ask("query", "Memory.Get", { key });
  return { space, host, store, settle, set, remove, list, get };
}

describe("Memory.*", () => {
  test("[L60] each key of Memory.Set is a document, and a set writes no other key", async () => {
    const { set, store, get } = await memory();
    for (let n = 0; n < 10; n++) expect(await set(`/${n}`, { n })).toEqual({ success: true });
    const before = store.stats().bytesWritten;
    await set("/3", { n: 30 });
    const cost = store.stats().bytesWritten - before;
    for (let n = 10; n < 200; n++) await set(`/${n}`, { n, text: "x".repeat(1_000) });
    const later = store.stats().bytesWritten;
    await set("/3", { n: 31 });
    expect(store.stats().bytesWritten - later).toBeLessThanOrEqual(cost + 16);
    expect(await get("/3")).toEqual({ value: { n: 31 } });
    expect((await store.list("s", { scope: "space", prefix: "memory/", limit: 1_000 })).documents).toHaveLength(200);
  });

  test("[L61] Memory.List pages through keys of a prefix in order", async () => {
    const { set, remove, list } = await memory();
    for (const key of ["/b", "/a/2", "/a/1", "/a", "/ab"]) await set(key, 1);
    expect(await list()).toEqual({ keys: ["/a", "/a/1", "/a/2", "/ab", "/b"] });
    expect(await list({ prefix: "/a/" })).toEqual({ keys: ["/a/1", "/a/2"] });
    expect(await list({ limit: 2 })).toEqual({ keys: ["/a", "/a/1"], after: "/a/1" });
    expect(await list({ limit: 2, after: "/a/1" })).toEqual({ keys: ["/a/2", "/ab"], after: "/ab" });
    expect(await list({ limit: 2, after: "/ab" })).toEqual({ keys: ["/b"] });
    await remove("/a/1");
    expect(await list({ prefix: "/a/" })).toEqual({ keys: ["/a/2"] });
    for (const data of [{ limit: 0 }, { limit: LIST_DOCUMENTS_MAX + 1 }, { after: 1 }, { prefix: "a" }])
      expect(await list(data)).toMatchObject({ code: 422 });
  });

  test("[L62] keys are counted as they come and go, and one too many is refused with 413", async () => {
    const { set, remove, space, host } = await memory();
    const count = space.cell<{ keys: number; units: number }>("memory");
    await set("/a", 1);
    await set("/a", 2);
    await set("/b", "x".repeat(MEMORY_UNIT_BYTES));
    expect(await host.run(() => count.pull())).toEqual({ keys: 2, units: 3 });
    await set("/b", 0);
    await remove("/a");
    await remove("/never");
    expect(await host.run(() => count.pull())).toEqual({ keys: 1, units: 1 });
    await host.run(() => space.transact(() => count.set({ keys: MEMORY_KEYS_MAX, units: 1 })));
    expect(await set("/c", 1)).toMatchObject({ code: 413 });
    expect(await set("/b", 5)).toEqual({ success: true });
    await remove("/b");
    expect(await set("/c", 1)).toEqual({ success: true });
  });

  test("[L63] values are bounded in sum, and one too many is refused with 413", async () => {
    const { set, space, host } = await memory();
    const count = space.cell<{ keys: number; units: number }>("memory");
    await set("/a", 1);
    await host.run(() => space.transact(() => count.set({ keys: 1, units: MEMORY_BYTES_MAX / MEMORY_UNIT_BYTES })));
    expect(await set("/b", 1)).toMatchObject({ code: 413 });
    expect(await set("/a", "x".repeat(2 * MEMORY_UNIT_BYTES))).toMatchObject({ code: 413 });
    expect(await set("/a", 2)).toEqual({ success: true });
  });

  test("[L64] a command with a document that would be too large is answered with 413", async () => {
    const { space, host } = await setupSpace();
    const cell = space.cell<string>("large");
    const large = transactional({
      space,
      description: "writes much",
      commands: { "Large.Write": { handle: (_: Json, tx) => tx.set(cell, "x".repeat(DOCUMENT_BYTES_MAX)) } },
    });
    const { loop } = await setup({ large }, { host });
    const { data } = await host.run(() => loop.request(command("Large.Write", "c1", null)));
    expect(data).toMatchObject({ code: 413, message: expect.stringContaining("document space/large would have") });
  });
});
