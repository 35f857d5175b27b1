/** The journal by filter: `Kernel.Journal`, bulk actions and replays. */
import { describe, expect, test } from "vitest";
import { app } from "../../src/app/app.ts";
import { type } from "../../src/app/event-definition.ts";
import { on } from "../../src/app/on.ts";
import { journalFilter } from "../../src/bus/journal-filter.ts";
import type { JournalView } from "../../src/kernel/journal-views.ts";
import type { Message } from "../../src/message/envelope.ts";
import { isFailure } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import type { JournalRow } from "../../src/store/journal.ts";
import { openOn, STORES } from "../app/app-setup.ts";

let isRepaired = false;

const mail = app("mail", ({ cell, event }) => {
  const sent = cell<string[]>("sent", []);
  const received = event("Mail.Received", type<{ to: string; size: number }>());
  return {
    commands: {
      "Mail.Take": (letter: { to: string; size: number }, tx) => {
        tx.emit(received, letter);
        return null;
      },
      "Mail.Note": (to: string, tx) => tx.update(sent, (all) => [...all, to]),
    },
    queries: { "Mail.Sent": () => sent.get() },
    on: {
      carrier: on(
        received,
        ({ to }, tx) => {
          if (to.startsWith("lost") && !isRepaired) throw new Error(`no road to ${to}`);
          tx.update(sent, (all) => [...all, to]);
        },
        { retry: 1 },
      ),
    },
  };
});

const dataOf = (message: Message | undefined) => (message?.data ?? {}) as { to?: string };

async function opened(store: (typeof STORES)[number], letters: readonly string[]) {
  isRepaired = false;
  const kernel = await openOn(store, mail);
  for (const [index, to] of letters.entries()) await kernel.command("Mail.Take", { to, size: index * 10 });
  await kernel.idle();
  const journal = async (asked: Json) => (await kernel.kernel.query("Kernel.Journal", asked)) as never as JournalView;
  const found = async (filter: string) =>
    (await journal({ filter, order: "ascending" })).rows.map(({ message }) => dataOf(message).to);
  const act = (type: string, data: Json) => kernel.kernel.command(type, data) as Promise<never>;
  return { kernel, journal, found, act };
}

describe.for(STORES)("the journal by filter, %s", (store) => {
  test("[W80] terms are AND, commas OR, a minus negates, and data is compared", async () => {
    const { found } = await opened(store, ["ann", "bob", "lost-1", "lost-2"]);
    expect(await found("type:Mail.Received")).toEqual(["ann", "bob", "lost-1", "lost-2"]);
    expect(await found("kind:event status:failed")).toEqual(["lost-1", "lost-2"]);
    expect(await found('kind:event error~"ROAD TO LOST-2"')).toEqual(["lost-2"]);
    expect(await found("kind:event -status:failed")).toEqual(["ann", "bob"]);
    expect(await found("kind:event data.to:ann,lost-*")).toEqual(["ann", "lost-1", "lost-2"]);
    expect(await found("kind:event data.size>=10 data.size<30")).toEqual(["bob", "lost-1"]);
    expect(await found("topic:Mail.* kind:command")).toEqual(["ann", "bob", "lost-1", "lost-2"]);
    expect(await found("kind:event since:1h")).toHaveLength(4);
    expect(await found("kind:event before:1h")).toEqual([]);
    expect(await found("subscriber:mail.carrier status:failed")).toEqual(["lost-1", "lost-2"]);
  });

  test("[W81] pages follow by cursor in both orders, without a gap and without a repetition", async () => {
    const letters = Array.from({ length: 7 }, (_, index) => `to-${index}`);
    const { journal } = await opened(store, letters);
    for (const order of ["ascending", "descending"] as const) {
      const seen: Json[] = [];
      for (let cursor: string | undefined, more = true; more; ) {
        const page = await journal({ filter: "kind:event", order, limit: 3, ...(cursor ? { cursor } : {}) });
        expect(page.rows.length).toBeLessThanOrEqual(3);
        seen.push(...page.rows.map(({ message }) => dataOf(message).to ?? null));
        cursor = page.next ?? page.scannedTo;
        more = cursor !== undefined;
      }
      expect(seen).toEqual(order === "ascending" ? letters : letters.toReversed());
    }
  });

  test("[W81] a range of ids bounds the scan, and a line has no data", async () => {
    const { journal } = await opened(store, ["ann", "bob", "carl"]);
    const { rows, head } = await journal({ order: "ascending" });
    expect(head).toBe(String(rows.at(-1)?.id));
    const [, second, third] = rows as unknown as [JournalRow, JournalRow, JournalRow];
    const some = await journal({ filter: `id:${second.id}..${third.id}`, fields: "line" });
    expect(some.rows.map(({ id }) => id)).toEqual([third.id, second.id]);
    expect(some.rows.map(({ message }) => message?.data)).toEqual([null, null]);
  });

  test("[W82] a bulk requeue counts first, acts on the whole filter, and leaves rows that came later", async () => {
    const { kernel, act, found } = await opened(store, ["lost-1", "lost-2", "ann"]);
    const counted = await act("Kernel.Requeue", { filter: "data.to:lost-*", dryRun: true });
    expect(counted).toMatchObject({ matched: 2, requeued: [], upTo: expect.any(String) });
    expect(await found("status:failed")).toEqual(["lost-1", "lost-2"]);
    await kernel.command("Mail.Take", { to: "lost-3", size: 1 });
    await kernel.idle();
    isRepaired = true;
    const { upTo } = counted as { upTo: string };
    expect(await act("Kernel.Requeue", { filter: "data.to:lost-*", upTo, by: "ann" })).toMatchObject({ matched: 2 });
    await kernel.idle();
    expect(await found("status:failed")).toEqual(["lost-3"]);
    expect((await kernel.query("Mail.Sent")).toSorted()).toEqual(["ann", "lost-1", "lost-2"]);
    const done = await act("Kernel.Discard", { filter: "data.to:lost-3", reason: "no such town" });
    expect(done).toMatchObject({ matched: 1, discarded: [expect.any(Number)] });
    expect(await found("status:discarded")).toEqual(["lost-3"]);
    const { rows } = (await kernel.kernel.query("Kernel.Journal", {
      ...{ filter: "type:Sys.Audited", order: "ascending" },
    })) as never as JournalView;
    expect(rows.map(({ message }) => message?.data)).toMatchObject([
      { action: "requeue", by: "ann", filter: "data.to:lost-*" },
      { action: "discard", reason: "no such town", filter: "data.to:lost-3" },
    ]);
  });

  test("[W84] a replay is a new message of the same conversation, with other data if given", async () => {
    const { kernel, journal, act } = await opened(store, ["lost-1"]);
    const [failed] = (await journal({ filter: "status:failed" })).rows as unknown as [JournalRow];
    const replayed = (await act("Kernel.Replay", { id: failed.id, data: { to: "ann", size: 2 } })) as never as {
      messageId: string;
    };
    await kernel.idle();
    expect(await kernel.query("Mail.Sent")).toEqual(["ann"]);
    const [again] = (await journal({ filter: `message:${replayed.messageId}` })).rows as unknown as [JournalRow];
    const { id, correlation = id } = failed.message?.metadata ?? {};
    expect(again.message?.metadata).toMatchObject({ replayOf: id, correlation });
    expect((await journal({ filter: `id:${failed.id}` })).rows[0]).toMatchObject({ status: "failed" });
    const [audited] = (await journal({ filter: "type:Sys.Audited" })).rows as unknown as [JournalRow];
    await expect(act("Kernel.Replay", { id: audited.id })).rejects.toMatchObject({ code: 422 });
    await expect(act("Kernel.Replay", { id: 99_999 })).rejects.toMatchObject({ code: 404 });
  });

  test("[W84] a replayed command runs once more", async () => {
    const { kernel, journal, act } = await opened(store, []);
    await kernel.command("Mail.Note", "ann");
    const [row] = (await journal({ filter: "type:Mail.Note" })).rows as unknown as [JournalRow];
    await act("Kernel.Replay", { id: row.id, data: "bob" });
    await kernel.idle();
    expect(await kernel.query("Mail.Sent")).toEqual(["ann", "bob"]);
  });
});

describe("filters", () => {
  test.for([
    ["stauts:failed", "did you mean status?"],
    ["status:broken", "takes pending"],
    ["failed", "is no term"],
    ["since:yesterday", "takes an age"],
    ["attempts>many", "takes a number"],
    ["id:x", "takes an id"],
    ["topic:mail.**.x", "takes topics"],
    ["type>Order", "write type:Order"],
    ['error~"open', "is no term"],
    ["x".repeat(3_000), "at most"],
    [Array.from({ length: 40 }, () => "kind:event").join(" "), "at most"],
  ] as const)("[W80] %s is refused with a remedy", ([text, remedy]) => {
    try {
      journalFilter(text, 0);
    } catch (error) {
      expect(isFailure(error) && error.code).toBe(422);
      expect((error as Error).message).toContain(remedy);
      return;
    }
    throw new Error("it was not refused");
  });

  test("[W80] an index answers single terms, and no negated or alternative ones", () => {
    expect(journalFilter("status:failed corr:c1 topic:a.b message:m cause:x", 0).query).toEqual({
      ...{ status: "failed", correlation: "c1", topic: "a.b", messageId: "m", causation: "x" },
    });
    expect(journalFilter("-status:failed corr:c1,c2 topic:a.* corr:c*", 0).query).toEqual({});
  });
});
