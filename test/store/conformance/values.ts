/** Names and values at their edges: odd keys, text that no store can hold, sizes, ownership. */
import { describe, expect, test } from "#test";
import { PAYLOAD_BYTES_MAX } from "../../../src/limits.ts";
import type { Json } from "../../../src/message/json.ts";
import type { CommitRequest } from "../../../src/store/commit.ts";
import { append, commitBy, committed, currentValue, entry, ref, rowOf, SPACE, set, write } from "./requests.ts";
import type { OpenStore } from "./store-under-test.ts";

const ODD_NAMES = [
  "",
  " ",
  "__proto__",
  "constructor",
  "toString",
  "a/b",
  "a.b",
  "a\\b",
  "'; drop table event_journal; --",
  '"',
  "%_*?[]",
  "0",
  "-0",
  "null",
  "\u0001\t\n\r",
  "é",
  "e\u0301",
  "\u{1F600}",
  "\uFEFF",
  "\uFFFF",
  "\u2028",
  "x".repeat(2_000),
];

const UNCLEAN = ["a\0b", "\uD800", "a\uDC00b"];

/** An object with exactly these own keys, of any name. */
function objectOf(keys: readonly string[], valueOfKey: (key: string) => Json): Json {
  return Object.fromEntries(keys.map((key) => [key, valueOfKey(key)]));
}

export function valueCases(open: OpenStore): void {
  describe("values", () => {
    test("[S15] every clean text can name a space, a scope, a document and a session", async () => {
      await using at = await open();
      for (const [n, name] of ODD_NAMES.entries()) {
        const patch = { scope: name, id: name, operations: [{ op: "set", path: [], value: n } as const] };
        committed(await at.store.commit(commitBy(name, 1, { space: name, patches: [patch] })));
      }
      const store = await at.reopen();
      for (const [n, name] of ODD_NAMES.entries()) {
        const { documents } = await store.load(name, [{ scope: name, id: name }, ref(name)]);
        expect(documents.map((document) => document.value)).toEqual([n, undefined]);
      }
    });

    test("[S14] every clean text can be a key, on the path to a value and inside one", async () => {
      await using at = await open();
      const whole = objectOf(ODD_NAMES, (key) => objectOf([key], () => key));
      await write(at.store, set("whole", [], whole), set("parts", [], {}));
      for (const name of ODD_NAMES) {
        await write(at.store, set("parts", [name], {}));
        await write(at.store, set("parts", [name, name], name));
      }
      const store = await at.reopen();
      for (const id of ["whole", "parts"]) {
        const value = (await currentValue(store, id)) as { [key: string]: { [key: string]: Json } };
        expect(Object.keys(value).sort()).toEqual([...ODD_NAMES].sort());
        for (const name of ODD_NAMES) {
          const inner = Object.getOwnPropertyDescriptor(value, name)?.value;
          expect(Object.getOwnPropertyDescriptor(inner, name)?.value).toBe(name);
          expect(Object.getPrototypeOf(inner)).toBe(Object.prototype);
        }
      }
    });

    test("[S14] every JSON value is returned unchanged", async () => {
      await using at = await open();
      const values: Json[] = [
        null,
        true,
        false,
        0,
        -1.5,
        1e21,
        5e-324,
        Number.MAX_SAFE_INTEGER,
        Number.MAX_VALUE,
        "",
        "text \u{1F600}\u0001",
        [],
        {},
        [[[]], [{}], null],
        { a: { b: [1, { c: null }] } },
      ];
      for (const [n, value] of values.entries()) await write(at.store, set(`v${n}`, [], value));
      const store = await at.reopen();
      for (const [n, value] of values.entries()) expect(await currentValue(store, `v${n}`)).toEqual(value);
    });

    test("[J14] odd names are returned unchanged by the journal and the due table", async () => {
      await using at = await open();
      for (const name of ODD_NAMES) {
        const id = name === "" ? "empty" : name;
        const appended = { ...entry({ id, data: objectOf([name], () => name) }), topic: name, source: name };
        const [journalId] = await append(at.store, appended);
        const row = await rowOf(at.store, journalId!);
        expect(row).toMatchObject({ topic: name, source: name });
        expect(row.message).toEqual(appended.message);
        expect((await at.store.query({ messageId: id, limit: 2 })).length).toBe(1);
        expect((await at.store.query({ topic: name, limit: 2 })).length).toBe(1);
        await at.store.changeDue([{ op: "put", kind: name, key: name, dueAtMs: 1, data: { name } }]);
      }
      const due = await at.store.dueRows(1, 100);
      expect(due.map((row) => [row.kind, row.key, row.data])).toEqual(ODD_NAMES.map((name) => [name, name, { name }]));
    });

    test("[S15] NUL and lone surrogates are misuse in every part of a commit, which stores no part", async () => {
      await using at = await open();
      for (const bad of UNCLEAN) {
        const parts: Partial<CommitRequest>[] = [
          { space: bad },
          { session: bad },
          { patches: [{ scope: bad, id: "a", operations: [{ op: "delete", path: [] }] }] },
          { patches: [set(bad, [], 1)] },
          { patches: [set("a", [], 1), set("a", [], { [bad]: 1 })] },
          { patches: [set("a", [], 1), set("b", [], ["x", { y: bad }])] },
          { patches: [set("a", [], {}), set("a", [bad], 1)] },
          { entries: [entry(), entry({ data: { x: bad } })] },
          { entries: [entry(), { ...entry(), topic: bad }] },
          { entries: [entry(), { ...entry(), source: bad }] },
          { due: [{ op: "put", kind: "timer", key: bad, dueAtMs: 1, data: null }] },
          { due: [{ op: "put", kind: bad, key: "k", dueAtMs: 1, data: null }] },
          { due: [{ op: "put", kind: "timer", key: "k", dueAtMs: 1, data: [bad] }] },
          { labels: [{ ...ref("a"), path: [], labels: [bad] }] },
          { basis: [{ node: bad, fingerprint: "f", inputs: [] }] },
        ];
        for (const [n, part] of parts.entries()) {
          const request = commitBy("s", 1, { patches: [set("a", [], 1)], ...part });
          await expect(at.store.commit(request), `part ${n}`).rejects.toMatchObject({ code: "STORE_MISUSE" });
        }
      }
      expect(await at.store.load(SPACE, [ref("a")])).toMatchObject({ sequence: 0, documents: [{ sequence: 0 }] });
      expect((await at.store.count()).pending).toBe(0);
      expect(await at.store.earliestDue()).toBeUndefined();
      expect(committed(await at.store.commit(commitBy("s", 1))).replayed).toBe(false);
    });

    test("[S15] a value that is not JSON is misuse in a commit and in changeDue, which store no part", async () => {
      await using at = await open();
      const deep = Array.from({ length: 100 }).reduce<unknown>((inner) => [inner], 1);
      const impure = [{ n: Number.NaN }, { n: Number.POSITIVE_INFINITY }, new Date(0), -0, { a: undefined }, deep];
      for (const [n, value] of impure.entries()) {
        const patches = [set("doc", [], value as Json)];
        await expect(at.store.commit(commitBy("s", n + 1, { patches }))).rejects.toMatchObject({
          code: "STORE_MISUSE",
        });
        const due = { op: "put", kind: "k", key: "a", dueAtMs: 1, data: value as Json } as const;
        await expect(at.store.changeDue([due])).rejects.toMatchObject({ code: "STORE_MISUSE" });
      }
      expect(await currentValue(at.store, "doc")).toBeUndefined();
      expect(await at.store.dueRows(10, 10)).toEqual([]);
    });

    test("[S15] NUL and lone surrogates are misuse in append and changeDue; other calls beside them succeed", async () => {
      await using at = await open();
      for (const bad of UNCLEAN) {
        const good = at.store.append([entry()]);
        const misuse = { code: "STORE_MISUSE" };
        await expect(at.store.append([entry(), entry({ data: bad })])).rejects.toMatchObject(misuse);
        await expect(at.store.append([entry(), { ...entry(), topic: bad }])).rejects.toMatchObject(misuse);
        await expect(
          at.store.changeDue([{ op: "put", kind: "timer", key: bad, dueAtMs: 1, data: null }]),
        ).rejects.toMatchObject(misuse);
        expect(await good).toMatchObject({ kind: "appended" });
      }
      expect((await at.store.count()).pending).toBe(UNCLEAN.length);
      expect(await at.store.earliestDue()).toBeUndefined();
    });

    test("[J162] with a lower payload limit, one byte more is refused, alone and in a commit", async () => {
      await using at = await open({ payloadBytesMax: 100 });
      const largest = "x".repeat(98);
      await append(at.store, entry({ data: largest }));
      const tooLarge = { kind: "rejected", class: "refused", reason: "too-large" };
      expect(await at.store.append([entry({ data: `${largest}x` })])).toMatchObject(tooLarge);
      const request = commitBy("s", 1, { patches: [set("a", [], 1)], entries: [entry({ data: `${largest}x` })] });
      expect(await at.store.commit(request)).toMatchObject(tooLarge);
      expect((await at.store.count()).pending).toBe(1);
      for (const wrong of [0, 1.5, Number.NaN, PAYLOAD_BYTES_MAX + 1])
        await expect(open({ payloadBytesMax: wrong })).rejects.toMatchObject({ code: "STORE_MISUSE" });
    });

    test("[J163] oversized messages are left out on request, and the others are journaled in order; alone they are refused", async () => {
      await using at = await open({ payloadBytesMax: 10 });
      const tooLarge = { kind: "rejected", class: "refused", reason: "too-large" };
      const [a, b, c, large] = [
        entry({ data: 1 }),
        entry({ data: 2 }),
        entry({ data: 3 }),
        entry({ data: "x".repeat(9) }),
      ];
      const outcome = await at.store.append([large, a, { ...large, topic: "other" }, b], "too-large");
      if (outcome.kind === "rejected") throw new Error(outcome.message);
      expect(outcome.ids).toEqual([0, 1, 0, 2]);
      expect([...(outcome.leftOut ?? [])]).toMatchObject([
        [0, tooLarge],
        [2, tooLarge],
      ]);
      expect((await at.store.query({ limit: 9 })).map(({ message }) => message?.data)).toEqual([1, 2]);
      expect(await at.store.append([c], "too-large")).toEqual({ kind: "appended", ids: [3] });
      expect(await at.store.append([large], "too-large")).toMatchObject(tooLarge);
      expect(await at.store.append([large, large], "too-large")).toMatchObject(tooLarge);
      expect(await at.store.append([a, large])).toMatchObject(tooLarge);
      expect((await at.store.count()).pending).toBe(3);
    });

    test("[J12] data of 1 MiB of JSON text is journaled; one byte more is refused, alone and in a commit", async () => {
      await using at = await open();
      // Two quotes, and characters of one, two and four bytes.
      const largest = `é\u{1F600}${"x".repeat(PAYLOAD_BYTES_MAX - 2 - 2 - 4)}`;
      const [id] = await append(at.store, entry({ data: largest }));
      expect((await rowOf(at.store, id!)).message?.data).toBe(largest);
      const tooLarge = { kind: "rejected", class: "refused", reason: "too-large" };
      expect(await at.store.append([entry(), entry({ data: `${largest}x` })])).toMatchObject(tooLarge);
      const request = commitBy("s", 1, { patches: [set("a", [], 1)], entries: [entry({ data: `${largest}x` })] });
      expect(await at.store.commit(request)).toMatchObject(tooLarge);
      expect((await at.store.count()).pending).toBe(1);
      expect(await currentValue(at.store, "a")).toBeUndefined();
      const spacious = entry();
      const metadata = { ...spacious.message.metadata, trace: "x".repeat(PAYLOAD_BYTES_MAX) };
      expect(await at.store.append([{ ...spacious, message: { ...spacious.message, metadata } }])).toMatchObject(
        tooLarge,
      );
      const escaped = "\n".repeat((PAYLOAD_BYTES_MAX - 2) / 2);
      expect(await at.store.append([entry({ data: escaped })])).toMatchObject({ kind: "appended" });
      expect(await at.store.append([entry({ data: `${escaped}x` })])).toMatchObject(tooLarge);
    });

    test("[S168] a request that only claims to be admitted is checked and copied", async () => {
      await using at = await open();
      const given = { list: [1] };
      const forged = { ...commitBy("s", 1, { patches: [set("a", [], given)] }), admitted: true, isAdmitted: true };
      committed(await at.store.commit(forged as never));
      given.list.push(2);
      expect(await currentValue(at.store, "a")).toEqual({ list: [1] });
    });

    test("[S16] changing passed or returned objects does not change stored data", async () => {
      await using at = await open();
      const given = { list: [1] };
      const appended = entry({ data: { list: [1] } });
      const data = { list: [1] };
      const labels = ["secret"];
      committed(
        await at.store.commit(
          commitBy("s", 1, {
            patches: [set("a", [], given)],
            entries: [appended],
            due: [{ op: "put", kind: "timer", key: "k", dueAtMs: 1, data }],
            labels: [{ ...ref("a"), path: [], labels }],
          }),
        ),
      );
      const spoil = (value: Json | undefined) => (value as { list: number[] }).list.push(2);
      const everything = async () => {
        const { documents } = await at.store.load(SPACE, [ref("a")]);
        const [row] = await at.store.query({ limit: 1 });
        const [due] = await at.store.dueRows(1, 1);
        const { commits } = await at.store.changesSince(SPACE, 0, 1);
        const operation = commits[0]?.patches[0]?.operations[0];
        const inFeed = operation?.op === "set" ? operation.value : undefined;
        return [documents[0]?.value, row?.message?.data, due?.data, inFeed];
      };
      for (const value of [given, appended.message.data, data]) spoil(value);
      labels.push("more");
      for (const value of await everything()) spoil(value);
      for (const value of await everything()) expect(value).toEqual({ list: [1] });
      expect((await at.store.load(SPACE, [ref("a")])).documents[0]?.labels).toEqual([{ path: [], labels: ["secret"] }]);
    });
  });
}
