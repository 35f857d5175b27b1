/** `Kernel.Erase`: the data of a subject go while the kernel runs, on every backend, and also after a crash. */
import { afterEach, describe, expect, test } from "vitest";
import { Kernel } from "../../src/kernel/kernel.ts";
import type { KernelParts } from "../../src/kernel/kernel-options.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { Json } from "../../src/message/json.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import type { Store } from "../../src/store/store.ts";
import { StoreFile } from "../store/sqlite/store-file.ts";

const PLANTED = "planted text of anna";
const files: StoreFile[] = [];
afterEach(async () => {
  for (const file of files.splice(0)) await file[Symbol.asyncDispose]();
});

/** Each call of the result opens the same data. */
const BACKENDS: readonly [string, () => () => Promise<Store>][] = [
  [
    "memory",
    () => {
      const disk = new MemoryDisk();
      return async () => memoryStore({ disk });
    },
  ],
  [
    "sqlite",
    () => {
      const file = new StoreFile();
      files.push(file);
      return () => file.open();
    },
  ],
];

function capabilities({ space }: KernelParts) {
  const user = (name: string) => space.cell<Json>(`users/${name}`);
  return {
    users: transactional({
      ...{ space, description: "keeps users" },
      commands: {
        "Users.Put": {
          handle: ({ name, text }: { name: string; text: string }, tx) => {
            tx.set(user(name), text);
            return { text };
          },
        },
        "Users.Forget": {
          handle: ({ name, fails }: { name: string; fails: boolean }, tx) => {
            tx.erase(name);
            if (fails) throw new Error("no");
            return null;
          },
        },
      },
    }),
    plain: capability({ description: "plain", commands: { "Plain.Do": { handle: () => null } } }),
  };
}

function asked(id: string, type: string, data: Json): Message {
  return { kind: "command", type, data, metadata: { id, timestamp: 1 } };
}

const PUT = asked("put-1", "Users.Put", { name: "anna", text: PLANTED });
const PLAIN = asked("plain-1", "Plain.Do", { user: "anna" });

describe.each(BACKENDS)("erasing while the kernel runs, on %s", (_, data) => {
  test("[K124] documents are gone for readers in this process, and repeats of erased requests get 410", async () => {
    await using kernel = await Kernel.open({ store: await data()(), capabilities });
    const anna = kernel.space.cell<string>("users/anna");
    await kernel.request(PUT);
    await kernel.request(PLAIN);
    await kernel.idle();
    expect(anna.get()).toBe(PLANTED);
    const answer = await kernel.request(asked("erase-1", "Kernel.Erase", { subject: "anna" }));
    expect(answer.data).toMatchObject({ documents: 1, receipts: 1, left: { unsettled: 0, due: 0, documents: [] } });
    await kernel.idle();
    expect(await anna.pull()).toBeUndefined();
    for (const request of [PUT, { ...PUT, data: { name: "anna", text: "other" } }])
      expect(await kernel.request(request)).toMatchObject({
        kind: "error",
        data: { code: 410, reason: "ERASED", message: expect.stringContaining("its answer was erased") },
      });
    expect(await kernel.request(PLAIN)).toMatchObject({
      kind: "error",
      data: { code: 410, message: expect.stringContaining("its answer is not kept") },
    });
    expect(await kernel.query("Kernel.Request", { id: PUT.metadata.id })).toMatchObject({ state: "erased" });
    await kernel.request(asked("put-2", "Users.Put", { name: "anna", text: "new" }));
    expect(anna.get()).toBe("new");
    const rows = await kernel.bus.query({ limit: 100 });
    expect(JSON.stringify(rows)).not.toContain(PLANTED);
    expect(rows.filter(({ message }) => message?.type === "Sys.Audited")).toHaveLength(1);
  });

  test("[K124] a repeated send whose receipt was erased fails, and its handler does not run again", async () => {
    await using kernel = await Kernel.open({ store: await data()(), capabilities });
    const notes = kernel.space.stream<string>("notes");
    let handled = 0;
    notes.handle((text) => {
      handled++;
      return text;
    });
    const send = () => notes.send(PLANTED, { eventId: "note-1" }).outcome;
    expect(await send()).toMatchObject({ kind: "handled", result: PLANTED });
    expect(await send()).toMatchObject({ kind: "already", result: PLANTED });
    await kernel.request(asked("erase-1", "Kernel.Erase", { subject: "anna" }));
    expect(await send()).toMatchObject({ kind: "failed", message: "handled before, and its result was erased" });
    expect(handled).toBe(1);
  });

  test("[K125] an erasure that was journaled and not carried out is carried out by the next kernel, and its row has no subject", async () => {
    const open = data();
    const first = await Kernel.open({ store: await open(), capabilities });
    await first.request(PUT);
    await first.close();
    const store = await data()();
    const as = { status: "pending" } as const;
    const message = asked("erase-1", "Kernel.Erase", { subject: "anna" });
    await store.append([{ message, topic: message.type, source: "users", as }]);
    await using kernel = await Kernel.open({ store, capabilities });
    await kernel.idle();
    const [row] = await kernel.bus.query({ messageId: "erase-1", limit: 1 });
    expect(row).toMatchObject({ status: "done", message: { data: { $erased: expect.any(String) } } });
    expect(await kernel.space.cell("users/anna").pull()).toBeUndefined();
    expect(JSON.stringify(await kernel.bus.query({ limit: 100 }))).not.toContain(PLANTED);
  });

  test("[K125] an erasure with an erased row of its own is repeated without effect", async () => {
    const store = await data()();
    const as = { status: "pending" } as const;
    const message = asked("erase-1", "Kernel.Erase", { $erased: "digest" });
    await store.append([{ message, topic: message.type, source: "users", as }]);
    await using kernel = await Kernel.open({ store, capabilities });
    await kernel.idle();
    expect(await kernel.bus.query({ messageId: "erase-1", limit: 1 })).toMatchObject([{ status: "done" }]);
    expect(await kernel.bus.query({ named: "Sys.Audited", limit: 1 })).toEqual([]);
  });

  test("[K126] tx.erase is carried out after the commit of its handler, and not if the handler fails", async () => {
    await using kernel = await Kernel.open({ store: await data()(), capabilities });
    const anna = kernel.space.cell<string>("users/anna");
    await kernel.request(PUT);
    const forget = (id: string, fails: boolean) => kernel.request(asked(id, "Users.Forget", { name: "anna", fails }));
    expect(await forget("forget-1", true)).toMatchObject({ kind: "error" });
    await kernel.idle();
    expect(await anna.pull()).toBe(PLANTED);
    expect(await forget("forget-2", false)).toMatchObject({ kind: "reply" });
    await kernel.idle();
    expect(await anna.pull()).toBeUndefined();
    const rows = await kernel.bus.query({ limit: 100 });
    expect(rows.filter(({ status }) => status === "pending" || status === "processing")).toEqual([]);
    expect(JSON.stringify(rows)).not.toContain("anna");
    const short = await kernel.request(asked("forget-3", "Users.Forget", { name: "an", fails: false }));
    expect(JSON.stringify(short.data)).toContain("at least 3 characters");
  });

  test("[K124] a subject that is too short is refused", async () => {
    await using kernel = await Kernel.open({ store: await data()(), capabilities });
    const refused = await kernel.request(asked("erase-1", "Kernel.Erase", { subject: "an" }));
    expect(refused).toMatchObject({ kind: "error", data: { code: 422 } });
  });
});
