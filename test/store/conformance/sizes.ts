/** The bound on the size of one document. */
import { describe, expect, test } from "#test";
import { DOCUMENT_BYTES_MAX } from "../../../src/limits.ts";
import type { CommitOutcome, CommitRequest } from "../../../src/store/commit.ts";
import { commitBy, currentValue, set, splice, write } from "./requests.ts";
import type { OpenStore, StoreUnderTest } from "./store-under-test.ts";

const TOO_LARGE = { kind: "rejected", class: "refused", reason: "too-large" };
/** Bytes that a backend may count around a value. */
const AROUND = 1_024;

function text(bytes: number): string {
  return "x".repeat(bytes);
}

/** The outcome once the store has measured the document. */
async function measured(at: StoreUnderTest, request: CommitRequest): Promise<CommitOutcome> {
  for (;;) {
    const outcome = await at.store.commit(request);
    if (outcome.kind === "committed" || outcome.reason !== "store-busy") return outcome;
    await at.host.yield();
  }
}

export function sizeCases(open: OpenStore): void {
  describe("sizes", () => {
    test("[S120] a document over the limit is refused with its whole commit", async () => {
      await using at = await open();
      const patches = [set("small", [], 1), set("large", [], text(DOCUMENT_BYTES_MAX))];
      expect(await at.store.commit(commitBy("s", 1, { patches }))).toMatchObject(TOO_LARGE);
      expect(await currentValue(at.store, "small")).toBeUndefined();
      expect(await currentValue(at.store, "large")).toBeUndefined();
      await write(at.store, set("large", [], text(DOCUMENT_BYTES_MAX - AROUND)));
      expect(await currentValue(at.store, "large")).toHaveLength(DOCUMENT_BYTES_MAX - AROUND);
    });

    test("[S120] the size of a document is counted in bytes of UTF-8 text", async () => {
      await using at = await open();
      const patches = [set("a", [], "\u00e9".repeat(DOCUMENT_BYTES_MAX / 2))];
      expect(await at.store.commit(commitBy("s", 1, { patches }))).toMatchObject(TOO_LARGE);
    });

    test("[S120] a document that grows patch by patch is refused at the limit, and can be replaced", async () => {
      await using at = await open();
      await write(at.store, set("a", [], { list: [] }));
      const chunk = DOCUMENT_BYTES_MAX / 8;
      let pushed = 0;
      const push = () =>
        measured(at, commitBy("s", pushed + 1, { patches: [splice("a", ["list"], pushed, 0, [text(chunk)])] }));
      for (let outcome = await push(); outcome.kind === "committed"; outcome = await push()) pushed++;
      expect(pushed).toBe(7);
      expect(await push()).toMatchObject(TOO_LARGE);
      const store = await at.reopen();
      expect(await store.commit(commitBy("t", 1, { patches: [set("a", ["more"], text(2 * chunk))] }))).toMatchObject(
        TOO_LARGE,
      );
      expect(Object.keys((await currentValue(store, "a")) as object)).toEqual(["list"]);
      await write(store, set("a", [], { list: [] }));
      await write(store, set("a", ["more"], text(2 * chunk)));
    });

    test("[S121] a document is not refused for values that were replaced", async () => {
      await using at = await open();
      await write(at.store, set("a", [], {}));
      const chunk = text(DOCUMENT_BYTES_MAX / 8);
      for (let n = 0; n < 20; n++) {
        const outcome = await measured(at, commitBy("s", n, { patches: [set("a", [`k${n % 2}`], chunk)] }));
        expect(outcome).toMatchObject({ kind: "committed" });
      }
      expect(await at.store.verify()).toMatchObject({ ok: true, problems: [] });
    });
  });
}
