/**
 * The `Store` interface beside a model: random histories of several sessions, spaces and store objects, with conflicts,
 * lease expiry, clock steps and restarts. Every answer, and all visible data after each step, must equal the model.
 */
import fc from "fast-check";
import { describe, expect, test } from "#test";
import type { Store } from "../../../src/store/store.ts";
import { histories, PROLOGUE, type Step } from "./model/actions.ts";
import type { StoreModel } from "./model/store-model.ts";
import { DOCUMENTS, NODES, type Planned, PREFIXES, SPACES, World } from "./model/world.ts";
import { ref } from "./requests.ts";
import type { OpenStore, StoreUnderTest } from "./store-under-test.ts";

/** Outcomes that must occur in enough histories; otherwise the histories prove little. */
const ENOUGH_RUNS = 200;
const DEMANDED = [
  "committed",
  "replayed",
  "read-moved",
  "fell-with",
  "document-exists",
  "origin-not-committed",
  "due-row-gone",
  "due-row-there",
  "protocol",
  "message-exists",
  "lease-lost",
  "claimed",
  "settled",
  "recovered",
  "requeued",
  "concluded",
  "consumers-moved",
  "removed",
  "running",
  "retry released",
  "retained",
] as const;

export function modelCases(open: OpenStore, runs: number): void {
  describe("model", () => {
    test("[S1] random histories get the answers of a plain model", async () => {
      const seen = new Set<string>();
      const property = fc.asyncProperty(histories, async (history) => {
        await using at = await open();
        await new HistoryRun(at, seen).run(history);
      });
      await fc.assert(property, { numRuns: runs });
      if (runs >= ENOUGH_RUNS) expect(DEMANDED.filter((outcome) => !seen.has(outcome))).toEqual([]);
    });
  });
}

class HistoryRun {
  readonly #world = new World();
  readonly #at: StoreUnderTest;
  readonly #seen: Set<string>;
  #stores: Store[] = [];

  constructor(at: StoreUnderTest, seen: Set<string>) {
    this.#at = at;
    this.#seen = seen;
  }

  async run(history: readonly Step[]): Promise<void> {
    this.#stores = [this.#at.store, await this.#at.second()];
    for (const step of [PROLOGUE, ...history]) {
      await this.#take(step);
      const store = this.#stores[0]!;
      expect(await observe(store)).toEqual(expectedSight(this.#world.model));
    }
    expect(await this.#stores[0]!.verify()).toMatchObject({ ok: true, problems: [] });
  }

  async #take(step: Step): Promise<void> {
    switch (step.kind) {
      case "clock":
        this.#world.model.nowMs += step.byMs;
        this.#at.host.stepClock(step.byMs);
        return;
      case "restart":
        this.#stores = [await this.#at.reopen(), await this.#at.second()];
        return;
      case "act": {
        const store = this.#stores[step.store]!;
        // Numbers that the store chooses are needed by the next action.
        const isChosen = this.#at.idsAreChosen || step.actions.some(({ kind }) => kind === "open lease");
        for (const actions of isChosen ? step.actions.map((one) => [one]) : [step.actions]) {
          const planned = actions.map((action) => this.#world.plan(action));
          const answers = await ask(store, planned);
          const expected = planned.map((one, at) =>
            isChosen ? this.#world.learn(one.expected, answers[at]) : one.expected,
          );
          expect(answers.map(comparable)).toEqual(expected.map(comparable));
          for (const [at, { name }] of planned.entries()) this.#note(name, expected[at]);
        }
      }
    }
  }

  #note(name: string, answer: unknown): void {
    const { kind, reason, replayed, released } = (answer ?? {}) as { [key: string]: unknown };
    if (typeof reason === "string") this.#seen.add(reason);
    else if (kind === "committed") this.#seen.add(replayed === true ? "replayed" : "committed");
    if (name === "claim" && Array.isArray(answer) && answer.length > 0) this.#seen.add("claimed");
    if (name === "settle" && Array.isArray(answer)) for (const result of answer) this.#seen.add(`${result}`);
    if (name === "recover" && answer !== 0) this.#seen.add("recovered");
    if (name === "requeue" && Array.isArray(answer) && answer.length > 0) this.#seen.add("requeued");
    if (name === "conclude" && Array.isArray(answer) && answer.length > 0) this.#seen.add("concluded");
    if (name === "remove consumer") this.#seen.add(`${answer}`);
    if (name === "retain" && answer !== 0) this.#seen.add("retained");
    if (typeof released === "number" && released > 0) this.#seen.add("retry released");
  }
}

/** Asks for all at once; but retention may take its time, so with it one after the other. */
async function ask(store: Store, planned: readonly Planned[]): Promise<unknown[]> {
  if (!planned.some(({ name }) => name === "retain")) return Promise.all(planned.map(({ call }) => call(store)));
  const answers: unknown[] = [];
  for (const { call } of planned) answers.push(await call(store));
  return answers;
}

/** All data of a store that a caller can see. */
async function observe(store: Store): Promise<unknown> {
  const spaces = [];
  for (const space of SPACES) {
    const { sequence, documents } = await store.load(space, DOCUMENTS.map(ref));
    const basis = await store.basis(space, NODES);
    const { history: _, ...feed } = await store.changesSince(space, 0, 1_000);
    const lists = [];
    for (const prefix of PREFIXES) lists.push(await store.list(space, { scope: ref("").scope, prefix, limit: 1_000 }));
    spaces.push({
      lists: lists.map((page) => page.documents.map(({ id, sequence }) => ({ id, sequence }))),
      sequence,
      documents: documents.map((document) => ({ ...document, labels: sorted(document.labels) })),
      basis,
      feed,
    });
  }
  return comparable({
    spaces,
    rows: await store.query({ limit: 1_000 }),
    count: await store.count(),
    consumers: await store.consumers(),
    due: (await store.dueRows(Number.MAX_SAFE_INTEGER, 1_000)).map(({ order, ...row }) => row),
    earliest: await store.earliestDue(),
  });
}

function expectedSight(model: StoreModel): unknown {
  const spaces = SPACES.map((name) => {
    const space = model.space(name);
    const documents = DOCUMENTS.map((id) => ({
      ...ref(id),
      value: space.values.get(id),
      sequence: space.sequenceOf(id),
      labels: sorted(
        [...space.labels.values()].filter((one) => one.id === id).map(({ path, labels }) => ({ path, labels })),
      ),
    }));
    const feed = { commits: space.commits, head: space.sequence, gap: false };
    const lists = PREFIXES.map((prefix) =>
      DOCUMENTS.filter((id) => id.startsWith(prefix) && space.values.has(id)).map((id) => ({
        id,
        sequence: space.sequenceOf(id),
      })),
    );
    return { lists, sequence: space.sequence, documents, basis: space.recorded(NODES), feed };
  });
  return comparable({
    spaces,
    rows: model.journal.rows,
    count: model.journal.count(),
    consumers: model.journal.consumers(model.nowMs),
    due: model.dueRows(Number.MAX_SAFE_INTEGER),
    earliest: model.dueRows(Number.MAX_SAFE_INTEGER)[0]?.dueAtMs,
  });
}

/** Lists that are sets. */
const UNORDERED = new Set(["deliveries", "inputs"]);

/** Without the parts that the rules leave open: the order of sets, and the message of a rejection. */
function comparable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(comparable);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value)
    .filter(([key, inner]) => !(key === "message" && typeof inner === "string"))
    .map(([key, inner]) => [key, UNORDERED.has(key) ? sorted(inner) : comparable(inner)]);
  return Object.fromEntries(entries);
}

function sorted<T>(list: readonly T[]): T[] {
  return [...list].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}
