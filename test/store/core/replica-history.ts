/** One random history of replicas, and the checks on it; see `replica-model.test.ts`. */
import type { SeededRandom } from "../../../src/host/seeded-random.ts";
import type { SimulatedHost } from "../../../src/host/simulated-host.ts";
import { equal } from "../../../src/message/equality.ts";
import type { Json } from "../../../src/message/json.ts";
import type { Notification } from "../../../src/store/change.ts";
import type { CommitOutcome, CommitRequest, LabelWrite } from "../../../src/store/commit.ts";
import type { DocumentRef } from "../../../src/store/document.ts";
import { MemoryDisk } from "../../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../../src/store/memory/memory-store.ts";
import { applyOperations, PatchError } from "../../../src/store/patch.ts";
import { rejected } from "../../../src/store/rejection.ts";
import { Replica } from "../../../src/store/replica.ts";
import { type Store, StoreError } from "../../../src/store/store.ts";
import type { Transaction } from "../../../src/store/transaction.ts";
import { type Fault, FaultyLine, type LineCall } from "../faulty-store.ts";
import { Mirror } from "./mirror.ts";
import { DOCUMENTS, PlainAccess, RECEIPTS, type Run, randomHandling, type Step, sorted } from "./random-program.ts";

const SPACE = "s";
const STEPS = 90;
const HANDED_OUT_KEPT = 200;

type Documents = ReadonlyMap<string, Json>;

interface MadeCommit {
  readonly request: CommitRequest;
  readonly sequence: number;
}

/** The expected state of the store, commit by commit. */
class History {
  readonly commits: MadeCommit[] = [];
  /** By sequence. */
  readonly states: Documents[] = [new Map()];

  recorded(store: Store): Store {
    return new Proxy(store, {
      get: (target, name) => {
        if (name === "commit") return (request: CommitRequest) => this.#commit(target, request);
        const member: unknown = Reflect.get(target, name);
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
  }

  async #commit(store: Store, request: CommitRequest): Promise<CommitOutcome> {
    const outcome = await store.commit(request);
    if (outcome.kind === "rejected" || outcome.replayed) return outcome;
    if (request.patches.length === 0 && request.labels.length === 0) return outcome;
    const next = new Map(this.states[outcome.sequence - 1]);
    for (const { id, operations } of request.patches) {
      const value = applyOperations(next.get(id), operations);
      if (value === undefined) next.delete(id);
      else next.set(id, value);
    }
    this.states[outcome.sequence] = next;
    this.commits.push({ request, sequence: outcome.sequence });
    return outcome;
  }
}

interface OpenTransaction {
  readonly transaction: Transaction;
  readonly steps: readonly Step[];
  readonly run: Run;
  next: number;
}

interface Ended {
  readonly steps: readonly Step[];
  readonly seen: readonly string[];
  outcome: CommitOutcome | undefined;
}

/** One replica with its line and its observers. */
class Site {
  readonly replica: Replica;
  readonly mirror: Mirror | undefined;
  readonly open: OpenTransaction[] = [];
  readonly handedOut: { readonly value: Json; readonly text: string }[] = [];
  /** Documents as they were last looked at, until a notification names them. */
  readonly #peeked = new Map<string, Json | undefined>();
  reverts = 0;
  pulls = 0;
  /** Documents that were here and could not be loaded anew. */
  lost = 0;
  #broken: unknown;

  constructor(replica: Replica, isMirrored: boolean) {
    this.replica = replica;
    this.mirror = isMirrored ? new Mirror() : undefined;
    replica.onTrouble = () => {
      this.lost++;
    };
    // Errors of a listener go to the host; here they end the run.
    replica.subscribe((notification) => {
      try {
        this.#notified(notification);
      } catch (error) {
        this.#broken ??= error;
      }
    });
  }

  #notified(notification: Notification): void {
    if (notification.kind === "revert") this.reverts++;
    if (notification.kind === "pull") this.pulls++;
    for (const change of notification.changes) {
      if (equal(change.before, change.after)) throw new Error(`${notification.kind} tells of a change that is none`);
      this.keep(change.before);
      this.keep(change.after);
      this.#peeked.delete(change.id);
      // A receipt that was read while it was pending is not notified (S77).
      if (!RECEIPTS.some(({ id }) => id === change.id)) this.mirror?.apply(change);
    }
  }

  keep(value: Json | undefined): void {
    if (typeof value !== "object" || value === null || this.handedOut.length >= HANDED_OUT_KEPT) return;
    this.handedOut.push({ value, text: JSON.stringify(value) });
  }

  /** An unchanged value is the same object at every read. */
  peekAll(): void {
    for (const ref of DOCUMENTS) {
      if (!this.mirror || this.replica.find(ref) === undefined) continue;
      const value = this.replica.peek(ref);
      if (this.#peeked.has(ref.id) && !Object.is(this.#peeked.get(ref.id), value)) {
        throw new Error(`document ${ref.id} was not changed and is another object`);
      }
      this.#peeked.set(ref.id, value);
      this.keep(value);
    }
  }

  check(history: History): void {
    if (this.#broken) throw this.#broken;
    this.replica.checkInvariants();
    for (const ref of [...DOCUMENTS, ...RECEIPTS]) {
      const document = this.replica.find(ref);
      if (!document) continue;
      const asOf = Math.max(document.loadedAt, this.replica.position);
      let expected = document.state === "loaded" ? history.states[asOf]?.get(ref.id) : undefined;
      for (const operation of document.pending.flatMap((share) => share.operations)) {
        try {
          expected = applyOperations(expected, [operation]);
        } catch (error) {
          if (!(error instanceof PatchError)) throw error;
        }
      }
      if (!equal(document.value, expected)) throw new Error(`document ${ref.id} is not what the store says`);
      if (this.mirror && DOCUMENTS.includes(ref) && !equal(this.mirror.documents.get(ref.id), document.value)) {
        throw new Error(`document ${ref.id} is not what was told of it`);
      }
    }
  }

  checkHandedOut(): void {
    for (const { value, text } of this.handedOut) {
      if (JSON.stringify(value) !== text) throw new Error(`a value that was handed out has changed: ${text}`);
    }
  }
}

export interface HistoryOptions {
  /** Decides which documents the store finds damaged, and when; without it, none. */
  readonly damage?: SeededRandom;
}

export interface HistorySummary {
  committed: number;
  rejected: number;
  reverts: number;
  pulls: number;
  lost: number;
}

export async function runHistory(
  host: SimulatedHost,
  random: SeededRandom,
  { damage }: HistoryOptions = {},
): Promise<HistorySummary> {
  const hasShortFeed = random.below(4) === 0;
  const disk = new MemoryDisk({ changesKept: damage ? 1 : hasShortFeed ? 3 : 1_000 });
  const damages = damage && new RandomDamage(damage);
  const history = new History();
  const sites: Site[] = [];
  const lines: FaultyLine[] = [];
  for (let i = 0; i < 2 + random.below(2); i++) {
    const line = new FaultyLine(history.recorded(memoryStore({ host, disk })));
    const isDropping = random.below(4) === 0;
    const opening = Replica.open({ store: line.store, space: SPACE, host, residentDocumentsMax: isDropping ? 2 : 100 });
    lines.push(line);
    sites.push(new Site(await opening, !isDropping));
    line.plan = (call) => ({ ...randomFault(call, host, random), ...damages?.fault(call, host) });
  }
  const ended = new Map<string, Ended>();

  for (let i = 0; i < STEPS; i++) {
    act(sites[random.below(sites.length)] as Site, random, ended);
    for (const site of sites) site.check(history);
    for (let steps = random.below(3); steps > 0; steps--) {
      await host.step();
      for (const site of sites) site.check(history);
    }
  }

  for (const line of lines) line.plan = () => ({});
  for (const site of sites) for (const { transaction } of site.open) transaction.abort();
  await host.runUntilIdle();
  for (const site of sites) {
    const caughtUp = site.replica.catchUp();
    await host.runUntilIdle();
    await caughtUp;
    const all = [...DOCUMENTS, ...RECEIPTS];
    for (const ref of all) site.replica.observe(ref);
    const loaded = site.replica.load(all);
    await host.runUntilIdle();
    await loaded;
    site.check(history);
    site.checkHandedOut();
    for (const { id } of all) {
      const value = site.replica.peek({ scope: "space", id });
      if (!equal(value, history.states.at(-1)?.get(id)))
        throw new Error(`at the end document ${id} is not the store's`);
    }
    if (site.replica.pendingCommits > 0) throw new Error("at the end a commit has no answer");
  }
  const checked = checkLabels(memoryStore({ host, disk }), sites);
  await host.runUntilIdle();
  await checked;
  checkSerial(history, ended);
  const outcomes = [...ended.values()].map(({ outcome }) => outcome?.kind);
  return {
    committed: outcomes.filter((kind) => kind === "committed").length,
    rejected: outcomes.filter((kind) => kind === "rejected").length,
    reverts: sites.reduce((sum, site) => sum + site.reverts, 0),
    pulls: sites.reduce((sum, site) => sum + site.pulls, 0),
    lost: sites.reduce((sum, site) => sum + site.lost, 0),
  };
}

function act(site: Site, random: SeededRandom, ended: Map<string, Ended>): void {
  const { replica, open } = site;
  switch (random.below(9)) {
    case 0:
      if (open.length < 3) open.push(begin(replica, random));
      return;
    case 1:
    case 2:
    case 3: {
      const held = open[random.below(Math.max(1, open.length))];
      if (held) advance(site, held, 1, random, ended);
      return;
    }
    case 4:
      return site.peekAll();
    case 5:
      void replica.catchUp().catch(() => undefined);
      return;
    default:
      advance(site, begin(replica, random), Number.POSITIVE_INFINITY, random, ended);
  }
}

function begin(replica: Replica, random: SeededRandom): OpenTransaction {
  return { transaction: replica.transaction(), steps: randomHandling(random), run: { seen: [], state: 0 }, next: 0 };
}

/** Runs some steps of a transaction, and commits it after the last. */
function advance(
  site: Site,
  held: OpenTransaction,
  count: number,
  random: SeededRandom,
  ended: Map<string, Ended>,
): void {
  const { transaction, steps, run } = held;
  const forget = () => {
    const index = site.open.indexOf(held);
    if (index >= 0) site.open.splice(index, 1);
  };
  try {
    for (let i = 0; i < count && held.next < steps.length; i++) (steps[held.next++] as Step)(transaction, run);
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== "STORE_STALE") throw error;
    transaction.abort();
    return forget();
  }
  if (held.next < steps.length) return;
  forget();
  if (random.below(10) === 0) return transaction.abort();
  if (random.below(10) === 0) transaction.labels.push(labelWrite(ended.size));
  const commit = transaction.commit();
  const result: Ended = { steps, seen: run.seen, outcome: undefined };
  ended.set(`${commit.session}/${commit.localSequence}`, result);
  void commit.outcome.then((outcome) => {
    result.outcome = outcome;
  });
}

/** Labels come and go, at two places of each document. */
function labelWrite(number: number): LabelWrite {
  const { id } = DOCUMENTS[number % DOCUMENTS.length] as DocumentRef;
  const labels = number % 3 === 0 ? [] : [`label ${number}`];
  return { scope: "space", id, path: number % 2 === 0 ? [] : ["labelled"], labels };
}

/** A site that has loaded a document knows its labels; a site that has only put the document may not. */
async function checkLabels(store: Store, sites: readonly Site[]): Promise<void> {
  const { documents } = await store.load(SPACE, DOCUMENTS);
  for (const { id, labels, scope } of documents) {
    const stored = new Map(labels.map((one) => [one.path.join("/"), one.labels]));
    for (const { replica } of sites) {
      const document = replica.find({ scope, id });
      if (document === undefined || document.isUnseen) continue;
      const here = document.labels?.places.map(({ path, label }) => [path.join("/"), label] as const) ?? [];
      if (!equal(Object.fromEntries(here) as never, Object.fromEntries(stored) as never))
        throw new Error(`at the end document ${id} is labelled otherwise than in the store`);
    }
  }
}

function randomFault({ method }: LineCall, host: SimulatedHost, random: SeededRandom): Fault {
  const delays = { arrives: randomDelay(host, random), answered: randomDelay(host, random) };
  if (method !== "commit") {
    return random.below(20) === 0 ? { ...delays, instead: new Error("the line is dead") } : delays;
  }
  switch (random.below(40)) {
    case 0:
      return { ...delays, instead: rejected("stale", "read-moved", "planted") };
    case 1:
      return { ...delays, instead: rejected("permanent", "document-exists", "planted") };
    case 2:
      return { ...delays, instead: rejected("failed", "store-full", "planted") };
    case 3:
      return { ...delays, instead: new Error("the line is dead") };
    case 4:
    case 5:
      return { ...delays, loseAnswer: true };
    case 6:
      return { ...delays, sendTwice: true };
    default:
      return delays;
  }
}

/**
 * Now one document is damaged, now another or none. Looks at the feed take long, so that it often does not reach back
 * any more.
 */
class RandomDamage {
  readonly #random: SeededRandom;
  #damaged: string | undefined;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  fault({ method, refs = [] }: LineCall, host: SimulatedHost): Fault {
    const random = this.#random;
    if (method === "changesSince")
      return { arrives: new Promise((resolve) => void host.timer(random.below(80), resolve)) };
    if (random.below(8) === 0) this.#damaged = DOCUMENTS[random.below(DOCUMENTS.length + 1)]?.id;
    if (!refs.some(({ id }) => id === this.#damaged)) return {};
    return { instead: new StoreError("STORE_CORRUPT", "stored bytes have changed") };
  }
}

function randomDelay(host: SimulatedHost, random: SeededRandom): Promise<void> {
  const delayMs = random.below(3) === 0 ? 0 : random.below(12);
  return delayMs === 0 ? Promise.resolve() : new Promise((resolve) => void host.timer(delayMs, resolve));
}

/**
 * The store holds the result of the landed commits run one after the other, and each of them has the same reads then.
 */
function checkSerial(history: History, ended: ReadonlyMap<string, Ended>): void {
  const landed = new Set<string>();
  let state: Documents = new Map();
  for (const { request, sequence } of history.commits) {
    const name = `${request.session}/${request.localSequence}`;
    const made = ended.get(name);
    if (!made || landed.has(name)) throw new Error(`commit ${name} landed ${made ? "twice" : "by itself"}`);
    landed.add(name);
    const access = new PlainAccess(state);
    const run: Run = { seen: [], state: 0 };
    for (const step of made.steps) step(access, run);
    state = access.documents;
    for (const { id } of [...DOCUMENTS, ...RECEIPTS]) {
      const [serial, stored] = [state.get(id), history.states[sequence]?.get(id)];
      if (!equal(serial, stored)) {
        throw new Error(
          `at ${sequence} document ${id} is ${JSON.stringify(sorted(stored))}, in turn it would be ${JSON.stringify(sorted(serial))}`,
        );
      }
    }
    if (!equal(run.seen, made.seen))
      throw new Error(`commit ${name} at ${sequence} read\n${made.seen.join("\n")}\nnot\n${run.seen.join("\n")}`);
  }
  for (const [name, { outcome }] of ended) {
    if (outcome === undefined) throw new Error(`commit ${name} has no outcome`);
    if (outcome.kind === "rejected" && outcome.class !== "unknown" && landed.has(name)) {
      throw new Error(`commit ${name} was rejected as ${outcome.class} and landed`);
    }
  }
}
