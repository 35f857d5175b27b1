/** The members of `Tx` at every entry point: each is there and bound, or refuses with the reason. */
import { describe, expect, test } from "#test";
import { pattern } from "../../src/cells/pattern.ts";
import type { Json } from "../../src/message/json.ts";
import type { Tx } from "../../src/work/tx.ts";
import { ASKED, can, EMITTED, ENTRY_POINTS, SENT } from "./entry-points.ts";
import { type MakeDisk, memoryWorlds, World } from "./world.ts";

const ID = "0199a3f2-0000-7000-8000-000000000001";
const LATER_MS = 1_000_000;

const worldOf = (makeDisk: MakeDisk = memoryWorlds) => new World(makeDisk);

for (const point of ENTRY_POINTS)
  describe(`members of the tx of a ${point.name}`, () => {
    test("[U76] the members of tx are bound", async () => {
      const world = worldOf();
      const process = await world.process();
      const { space } = process;
      const [count, list] = [space.cell<number>("count", 0), space.cell<number[]>("list", [])];
      const gone = space.cell<number>("gone", 1);
      const double = space.computed("double", () => count.get() * 2);
      const [inbox, inner] = [space.stream<string>("inbox"), space.stream<string>("inner")];
      const heard: string[] = [];
      inbox.handle((value) => void heard.push(value));
      inner.handle(() => undefined);
      const note = pattern("note", () => ({}));
      await world.run(() => Promise.all([count.pull(), list.pull(), gone.pull()]));
      const seen: Json[] = [];
      const handler = (_data: Json, tx: Tx) => {
        seen.length = 0;
        const { get, set, update, push, splice, emit, publish, send, sendTo, start, setTimer, cancelTimer } = tx;
        const { delete: remove, newId, within, attempt, signal, now, launch, refuse } = tx;
        set(count, 1);
        update(count, (n) => n + 1);
        push(list, 1, 2, 3);
        splice(list, 0, 1);
        remove(gone);
        for (const id of [emit(EMITTED, 1), publish(EMITTED, 2), send(SENT, 3)]) expect(typeof id).toBe("string");
        setTimer({ name: "kept", delayMs: LATER_MS, send: { type: SENT, data: 4 } });
        setTimer({ name: "ended", delayMs: LATER_MS, send: { type: SENT, data: 5 } });
        cancelTimer("ended");
        sendTo(inbox, "hello");
        start(note, {});
        launch({ started: () => undefined, confirmed: () => void heard.push("confirmed"), cancelled: () => undefined });
        expect([typeof newId(), typeof newId("name"), attempt, typeof now]).toEqual(["string", "string", 1, "number"]);
        expect([signal.aborted, typeof refuse, within(() => 5)]).toEqual([false, "function", 5]);
        seen.push(get(count), get(list), get(double) as number);
        return null;
      };
      const entry = await point.open(process, handler);
      const ended = entry.handle(ID, null);
      await world.settle();
      await world.settle();
      expect((await ended).kind).toBe("done");
      // A computed value is from before the writes of its handler (U45).
      expect(seen).toEqual([2, [2, 3], 0]);
      expect([count.get(), list.get(), heard.sort()]).toEqual([2, [2, 3], ["confirmed", "hello"]]);
    });

    test("[U78] a handler can ask others, or is told that its entry point cannot", async () => {
      const world = worldOf();
      const process = await world.process();
      const asks = async (_data: Json, { command }: Tx) => command(ASKED, null);
      const told: string[] = [];
      const says = (_data: Json, { command }: Tx) =>
        void command(ASKED, null).catch((error: Error) => void told.push(error.message));
      const canAsk = can(point, "requests");
      const entry = await point.open(process, canAsk ? asks : says);
      const ended = entry.handle(ID, null);
      await world.settle();
      await world.settle();
      if (canAsk) expect(await ended).toMatchObject({ kind: "done" });
      else expect(told).toEqual([expect.stringContaining("cannot ask")]);
    });
  });
