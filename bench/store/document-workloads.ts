/** The documents' rows of the store benchmark: loading many, and changing one key of a large one. */
import type { Metric, Scale, Workload } from "../harness/benchmark.ts";
import { perSecond } from "../harness/timing.ts";
import { DocumentWriter, documentRef, SPACE } from "./documents.ts";
import { pieces } from "./events.ts";
import { concurrently } from "./journal-runs.ts";
import { sideBySide } from "./side-by-side.ts";

const DOCUMENTS = 10_000;
const WIDE_KEYS = 10_000;
const NARROW_KEYS = 10;
const CALLERS = 64;
const CHANGES: Readonly<Record<Scale, number>> = { quick: 1000, full: 5000, long: 50_000 };

const GROUP = "documents, durability power (FULL)";

export const documentWorkloads: readonly Workload[] = [loadMany(), changeOneKey()];

function loadMany(): Workload {
  return sideBySide({
    group: GROUP,
    name: `load ${DOCUMENTS.toLocaleString("en-US")} documents`,
    durability: "power",
    metrics: [{ name: "documents/s", better: "higher" }],
    store: async (store) => {
      const refs = await new DocumentWriter(store).makeSmall(DOCUMENTS);
      const rate = await perSecond(DOCUMENTS, async () => {
        const { documents } = await store.load(SPACE, refs);
        if (documents.some((document) => document.value === undefined)) throw new Error("a document is missing");
      });
      return { "documents/s": rate };
    },
  });
}

/** The same change, in a document of ten keys and in one of ten thousand: it must cost the same. */
function changeOneKey(): Workload {
  const wide = documentRef("wide");
  const narrow = documentRef("narrow");
  const perCommit = (count: string): Metric => ({ name: `${count} per commit`, better: "lower" });
  return sideBySide({
    group: GROUP,
    name: `change one key of ${WIDE_KEYS.toLocaleString("en-US")}, ${CALLERS} callers`,
    durability: "power",
    metrics: [
      { name: "commits/s", better: "higher" },
      perCommit("statements"),
      perCommit("bytes"),
      // Twice, where the patches have just outgrown the document and it was written anew.
      { name: "bytes, of those with 10 keys", better: "lower", target: { of: "itself", atMost: 2 } },
    ],
    bare: async (bare, { scale }) => {
      const patch = JSON.stringify([{ op: "set", path: ["key-1234", "count"], value: 1 }]);
      const waves = pieces(new Array<string>(CHANGES[scale]).fill(patch), CALLERS);
      const rate = await perSecond(CHANGES[scale], () => {
        for (const wave of waves) bare.appendPatches(1, wave);
      });
      return { "commits/s": rate };
    },
    store: async (store, { scale }) => {
      const writer = new DocumentWriter(store);
      await writer.makeWide(wide, WIDE_KEYS);
      await writer.makeWide(narrow, NARROW_KEYS);
      // The memory store copies a container that it changes, however wide.
      const count = store.backend === "memory" ? CHANGES[scale] / 20 : CHANGES[scale];
      const changes = Array.from({ length: count }, (_, index) => index);
      const started = store.stats();
      const rate = await perSecond(changes.length, () =>
        concurrently(CALLERS, changes, (change) => writer.changeKey(wide, change % NARROW_KEYS, change)),
      );
      const after = store.stats();
      await concurrently(CALLERS, changes, (change) => writer.changeKey(narrow, change % NARROW_KEYS, change));
      const bytesWide = after.bytesWritten - started.bytesWritten;
      return {
        "commits/s": rate,
        "statements per commit": (after.statements - started.statements) / changes.length,
        "bytes per commit": bytesWide / changes.length,
        "bytes, of those with 10 keys": bytesWide / (store.stats().bytesWritten - after.bytesWritten),
      };
    },
  });
}
