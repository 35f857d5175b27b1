/** One reader of the journal for all event streams: counted work, bounded slices, fair shares, bounds. */

import { describe, expect, test } from "#test";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import {
  STREAM_NAMES_ALL_MAX,
  STREAM_NAMES_MAX,
  STREAM_PAGE_ROWS_MAX,
  STREAM_SLICE_EVENTS_MAX,
  STREAMS_ALL_MAX,
  STREAMS_MAX,
} from "../../src/limits.ts";
import { FilterIndex } from "../../src/loop/stream-filter.ts";
import type { Json } from "../../src/message/json.ts";
import { matchesTopic } from "../../src/message/topic-pattern.ts";
import { cursorOf, passedIn } from "../../src/store/journal-position.ts";
import { BareActor, bare, type Client, command, query, setup } from "./loop-setup.ts";
import { at, streamJournal } from "./stream-journal.ts";

async function reading(rows = 0, type = "A.Told") {
  const journal = streamJournal();
  if (rows > 0) journal.append(type, rows);
  const actor = new BareActor();
  const made = await setup({ bare: bare(() => actor) }, { events: journal.journal });
  let asked = 0;
  const subscribe = (data: Json, client: Client = made.client()) => {
    made.loop.receive(command("Sys.Subscribe", `s${++asked}`, data), client);
    return client;
  };
  return { ...made, ...journal, actor, subscribe };
}

const ids = ({ received }: Client) =>
  received.filter(({ kind }) => kind === "event").map(({ metadata }) => metadata["journalId"]);

describe("counted work", () => {
  const ROWS = 10 * STREAM_PAGE_ROWS_MAX;

  async function cost(streams: number, from: (n: number) => number): Promise<{ rows: number; pages: number }> {
    const { subscribe, settle, pages, rowsRead, loop, hold } = await reading(ROWS);
    const release = hold();
    for (let n = 0; n < streams; n++) {
      subscribe({ from: cursorOf(at(from(n))), types: ["No.Such"] });
      // The first begins the sweep; the others meet it.
      if (n === 0) await settle();
    }
    await settle();
    release();
    await settle();
    expect(loop.streams.size).toBe(streams);
    return { rows: rowsRead(), pages: pages.length };
  }

  test("[N16] 640 streams from one place read as many rows and pages of the journal as one stream", async () => {
    expect(await cost(640, () => 0)).toEqual(await cost(1, () => 0));
  });

  test("[N16] streams from 640 places read each row of the journal at most twice in all", async () => {
    const { rows } = await cost(640, (n) => n * 2);
    expect(rows).toBeLessThanOrEqual(2 * ROWS);
  });

  test("[N16] an event that comes is read once for all streams that wait for it", async () => {
    const { subscribe, settle, append, rowsRead } = await reading(5);
    const clients = Array.from({ length: 100 }, () => subscribe(null));
    await settle();
    const before = rowsRead();
    append("A.Told");
    await settle();
    expect(rowsRead() - before).toBe(1);
    expect(clients.map(ids)).toEqual(clients.map(() => [6]));
  });

  test("[N16] a pattern is matched once for each topic, not for each event", () => {
    const index = new FilterIndex<{ filter: { types: Set<string>; topics: Set<string> } }>();
    for (let n = 0; n < 1_000; n++) index.add({ filter: { types: new Set(), topics: new Set([`no.${n}.*`]) } });
    for (let n = 0; n < 5_000; n++) index.wanting("A.Told", "a.told");
    expect(index.looks).toBe(1_000);
  });
});

describe("slices", () => {
  test("[L1] [N17] the host runs after one page, however many rows no stream wants", async () => {
    const { subscribe, host, pages, rowsRead } = await reading(20 * STREAM_PAGE_ROWS_MAX);
    for (let n = 0; n < 40; n++) subscribe({ from: cursorOf(at(n * STREAM_PAGE_ROWS_MAX)), types: ["No.Such"] });
    let before = 0;
    while (rowsRead() < 20 * STREAM_PAGE_ROWS_MAX) {
      await host.step();
      expect(pages.length - before).toBeLessThanOrEqual(1);
      before = pages.length;
    }
  });

  test("[L1] [N17] the host gets in after 128 events that are sent, all streams together", async () => {
    const { subscribe, host, settle } = await reading(50);
    const clients = Array.from({ length: 200 }, () => subscribe({ from: "start" }));
    const sent = () => clients.reduce((sum, client) => sum + ids(client).length, 0);
    for (let before = 0; before < 50 * 200; before = sent()) {
      await host.step();
      expect(sent() - before).toBeLessThanOrEqual(STREAM_SLICE_EVENTS_MAX);
    }
    await settle();
    expect(sent()).toBe(50 * 200);
  });

  test("[L1] [N17] a request of another client waits for as few steps beside 640 streams as beside one", async () => {
    const steps = async (streams: number) => {
      const { subscribe, host, loop, client, actor, rowsRead } = await reading(100 * STREAM_PAGE_ROWS_MAX);
      for (let n = 0; n < streams; n++) subscribe({ from: cursorOf(at(n * 16)), topics: [`no.${n}.*`] });
      while (rowsRead() < 10 * STREAM_PAGE_ROWS_MAX) await host.step();
      loop.receive(query("Bare.Ask", "q"), client());
      let taken = 0;
      for (; actor.posted.length === 0; taken++) await host.step();
      return taken;
    };
    expect(await steps(640)).toBeLessThanOrEqual(Math.max(await steps(1), 4));
  });
});

describe("fair shares", () => {
  test("[N17] a stream near the end has its events after a few pages, while another reads the whole journal", async () => {
    const rows = 100 * STREAM_PAGE_ROWS_MAX;
    const { subscribe, host, pages } = await reading(rows);
    subscribe({ from: "start", types: ["No.Such"] });
    while (pages.length < 5) await host.step();
    const near = subscribe({ from: cursorOf(at(rows - 10)) });
    while (ids(near).length < 10) await host.step();
    expect(pages.length).toBeLessThanOrEqual(5 + 4);
  });

  test("[N17] streams that begin again and again, at both ends, do not keep one in the middle from its events", async () => {
    const rows = 20 * STREAM_PAGE_ROWS_MAX;
    const { subscribe, host, pages, loop, append } = await reading(rows);
    const middle = subscribe({ from: cursorOf(at(rows / 2)) });
    let hostile = subscribe({ from: "start", types: ["No.Such"] });
    for (let seen = 0; ids(middle).length < rows / 2; ) {
      await host.step();
      if (pages.length < seen + 4) continue;
      seen = pages.length;
      loop.disconnect(hostile);
      hostile = subscribe({ from: "start", types: ["No.Such"] });
      append("B.Told", STREAM_PAGE_ROWS_MAX * 2);
      subscribe({ from: cursorOf(at(rows)), types: ["No.Such"] }, hostile);
      // Each lap of the sweep takes it on; twenty would be starving.
      expect(pages.length).toBeLessThan(2_000);
    }
    expect(ids(middle).slice(0, rows / 2)).toEqual(Array.from({ length: rows / 2 }, (_, n) => rows / 2 + n + 1));
  });
});

describe("bounds", () => {
  const told = ({ received }: Client) => received.at(-1)?.data as { code?: number; message?: string };

  test("[N18] a kernel refuses the stream beyond its number in all, with a 503 that says so", async () => {
    const { subscribe, settle, loop, client } = await reading();
    for (let n = 0; n < STREAMS_ALL_MAX / STREAMS_MAX; n++) {
      const one = client();
      for (let m = 0; m < STREAMS_MAX; m++) subscribe(null, one);
    }
    const late = subscribe(null);
    await settle();
    expect(told(late)).toMatchObject({ code: 503, message: expect.stringContaining(`${STREAMS_ALL_MAX}`) });
    expect(loop.streams.size).toBe(STREAMS_ALL_MAX);
  });

  test("[N18] streams name a bounded number of types and topics in all; places come back when a stream ends", async () => {
    const { subscribe, settle, loop, client } = await reading();
    const names = (n: number) => Array.from({ length: STREAM_NAMES_MAX }, (_, m) => `t${n}.n${m}.*`);
    const first = client();
    for (let n = 0; n < STREAM_NAMES_ALL_MAX / STREAM_NAMES_MAX; n++)
      subscribe({ topics: names(n) }, n < STREAMS_MAX ? first : client());
    const late = subscribe({ topics: ["one.more"] });
    await settle();
    expect(told(late)).toMatchObject({ code: 503, message: expect.stringContaining(`${STREAM_NAMES_ALL_MAX}`) });
    loop.disconnect(first);
    const next = subscribe({ topics: ["one.more"] });
    await settle();
    expect(told(next)).toMatchObject({ subscription: expect.any(String) });
  });
});

describe("random histories", () => {
  const TYPES = ["A.One", "A.Two", "B.One", "C.Three"];
  const TOPICS = ["A.*", "*.One", "**", "C.**", "B.One", "No.Such"];

  for (let seed = 1; seed <= 25; seed++) {
    test(`[N12] [N16] seed ${seed}: each stream gets its events, in order, once`, async () => {
      const random = new SeededRandom(seed);
      const below = (n: number) => random.uint32() % n;
      const pick = <T>(list: readonly T[]) => list.filter(() => below(3) === 0);
      const { subscribe, settle, host, append, journal, client } = await reading();
      const page = (from: number) => journal.feed?.page(at(from), 10_000);
      const streams: { client: Client; types: string[]; topics: string[]; after: number }[] = [];
      /** A stream that was too slow is begun again where its error says. */
      const goOn = () => {
        for (const { client: one, types, topics } of streams) {
          const { kind, data } = one.received.at(-1) ?? {};
          const place = /from (\S+)$/.exec((data as { message?: string } | undefined)?.message ?? "");
          if (kind !== "error" || !place) continue;
          one.received.pop();
          subscribe({ types, topics, from: place[1] as string }, one);
        }
      };
      for (let round = 0; round < 30; round++) {
        for (let n = below(4); n > 0; n--) append(TYPES[below(TYPES.length)] as string, 1 + below(150));
        for (let n = below(3); n > 0; n--) {
          const lastId = passedIn((await journal.feed?.end()) ?? at(0), 0);
          const from = below(2) === 0 ? undefined : below(lastId + 1);
          const [types, topics, one] = [pick(TYPES), pick(TOPICS), client()];
          subscribe({ types, topics, ...(from === undefined ? {} : { from: cursorOf(at(from)) }) }, one);
          while (one.received.length === 0) await host.step();
          streams.push({ client: one, types, topics, after: from ?? lastId });
        }
        for (const { client: one } of streams) {
          if (below(5) === 0) one.hasRoom = false;
          else if (below(2) === 0) one.makeRoom();
        }
        for (let n = below(20); n > 0; n--) await host.step();
        goOn();
      }
      for (const { client: one } of streams) one.makeRoom();
      goOn();
      await settle();
      const all = (await page(0))?.rows ?? [];
      for (const { client: one, types, topics, after } of streams) {
        const wants = (type: string) =>
          types.length + topics.length === 0 ||
          types.includes(type) ||
          topics.some((pattern) => matchesTopic(pattern, type));
        const expected = all.filter(({ id, topic }) => id > after && wants(topic)).map(({ id }) => id);
        expect(ids(one), JSON.stringify({ seed, types, topics, after })).toEqual(expected);
      }
    });
  }
});
