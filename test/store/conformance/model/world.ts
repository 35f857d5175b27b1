/**
 * A random history as it runs: the model, the view of each session, and all values handed out, so that they can be
 * named again. `plan` gives an action its meaning, applies it to the model, and returns the call for a store.
 */
import type { Json } from "../../../../src/message/json.ts";
import type { CommitRequest } from "../../../../src/store/commit.ts";
import { type Consumer, consumerKey } from "../../../../src/store/consumer.ts";
import type { DueChange } from "../../../../src/store/due.ts";
import type { Claim, Conclusion, Delivery, JournalEntry, Settlement } from "../../../../src/store/journal.ts";
import type { Store } from "../../../../src/store/store.ts";
import { commitBy, message, ref } from "../requests.ts";
import type { Action, DuePick, EntryPick, PreconditionPick, ReadPick, SettlementPick } from "./actions.ts";
import { patchValues } from "./document-model.ts";
import { KEYS, planEdit } from "./edits.ts";
import { StoreModel } from "./store-model.ts";

export const SPACES = ["one", "two"] as const;
export const DOCUMENTS = ["d0", "d1", "d2", "d3"] as const;
export const PREFIXES = ["", "d", "d1", "none"] as const;
export const NODES = ["n0", "n1", "n2"] as const;

export interface Planned {
  readonly name: string;
  call(store: Store): Promise<unknown>;
  readonly expected: unknown;
}

const NOTHING: Planned = { name: "nothing", expected: undefined, call: async () => undefined };

/** A replica's side of the interface: the sequence that it has seen, and its own commits on top. */
interface Session {
  readonly name: string;
  readonly space: string;
  localSequence: number;
  seenSequence: number;
  seen: Map<string, Json>;
}

type CommitAction = Action & { kind: "commit" };

/** Numbers that a store chooses. */
interface Chosen {
  readonly lease?: number;
  readonly expiresAtMs?: number;
  readonly ids?: number[];
  readonly journalIds?: number[];
}

export class World {
  readonly model = new StoreModel();
  readonly #sessions: Session[] = [0, 1, 2, 3].map((n) => ({
    name: `session ${n}`,
    space: SPACES[n % 2]!,
    localSequence: 0,
    seenSequence: 0,
    seen: new Map(),
  }));
  /** Newest last. */
  readonly #claims: Claim[] = [];
  readonly #requests: CommitRequest[] = [];
  readonly #entries: JournalEntry[] = [];
  /** Leases that were opened, oldest first. */
  readonly #leases: number[] = [];

  plan(action: Action): Planned {
    const { model } = this;
    const { journal, nowMs } = model;
    const planned = (expected: unknown, call: (store: Store) => Promise<unknown>) => ({
      name: action.kind,
      expected,
      call,
    });
    switch (action.kind) {
      case "refresh":
        return this.#refresh(this.#sessions[action.session]!);
      case "commit":
        return this.#send(this.#request(action));
      case "send again":
        return this.#sendAgain(action.back, action.spoilt);
      case "append": {
        const entries = action.entries.map((pick) => this.#entry(pick));
        return planned(journal.append(entries, nowMs), (store) => store.append(entries));
      }
      case "open lease":
        return planned(journal.openLease(action.forMs, nowMs), (store) => store.openLease(action.forMs));
      case "renew lease": {
        const lease = this.#lease(action.lease);
        return planned(journal.renewLease(lease, action.forMs, nowMs), (store) =>
          store.renewLease(lease, action.forMs),
        );
      }
      case "close lease": {
        const lease = this.#lease(action.lease);
        return planned(journal.closeLease(lease), (store) => store.closeLease(lease));
      }
      case "claim": {
        const { limit, kinds, suspects } = action;
        const consumers = action.consumers.map(keyOf);
        const request = { lease: this.#lease(action.lease), limit, kinds, consumers, ...(suspects && { suspects }) };
        const claims = journal.claim(request, nowMs);
        this.#claims.push(...claims);
        return planned(claims, (store) => store.claim(request));
      }
      case "settle": {
        const settlements = action.settlements.flatMap((pick) => this.#settlement(pick));
        const expected = settlements.map((settlement) => journal.settle(settlement, nowMs));
        return planned(expected, (store) => store.settle(settlements));
      }
      case "recover":
        return planned(journal.recover(nowMs), (store) => store.recover());
      case "requeue": {
        const { onlyFor: one } = action;
        const ids = this.#ids(action.ids);
        const onlyFor = one === undefined ? undefined : { subscribers: [`s${one}`], others: [`s${1 - one}`, "other"] };
        return planned(journal.requeue(ids, onlyFor), (store) => store.requeue(ids, onlyFor));
      }
      case "declare consumers": {
        const running = { lease: this.#lease(action.lease), keys: action.consumers.map(keyOf) };
        const declaration = { consumers: action.consumers.map(consumerAt), running };
        return planned(journal.declare(declaration, nowMs), (store) => store.declareConsumers(declaration));
      }
      case "remove consumer": {
        const { consumer, except, limit } = action;
        const exceptLease = except === undefined ? undefined : this.#lease(except);
        const removal = { ...consumerAt(consumer), exceptLease, limit };
        return planned(journal.removeConsumer(removal, nowMs), (store) => store.removeConsumer(removal));
      }
      case "conclude": {
        const { from } = action;
        const ids = this.#ids(action.ids);
        const outcome = from === "failed" ? "discarded" : "cancelled";
        const conclusion: Conclusion = { from, ending: { outcome, reason: "given up" } };
        return planned(journal.conclude(ids, conclusion, nowMs), (store) => store.conclude(ids, conclusion));
      }
      case "release retries": {
        const atMs = nowMs + action.inMs;
        return planned(journal.releaseRetries(atMs), (store) => store.releaseRetries(atMs));
      }
      case "retain": {
        const { agoMs, keepSettled, limit } = action;
        const retention = {
          limit,
          ...(agoMs === undefined ? {} : { settledBeforeMs: nowMs - agoMs }),
          ...(keepSettled === undefined ? {} : { keepSettled }),
        };
        return planned(journal.retain(retention), (store) => store.retain(retention));
      }
      case "change due": {
        const changes = action.changes.map((pick) => this.#dueChange(pick));
        const expected: boolean[] = [];
        for (const change of changes) {
          const isOver = changes.slice(0, expected.length).some(({ op }, at) => op !== "cancel" && !expected[at]);
          expected.push(!isOver && model.changeDue(change));
        }
        return planned(expected, (store) => store.changeDue(changes));
      }
    }
  }

  /** The expected answer with the numbers that the store has chosen: of a new lease, and of new rows. */
  learn(expected: unknown, answer: unknown): unknown {
    const { journal } = this.model;
    const [wanted, given] = [expected ?? {}, answer ?? {}] as Chosen[];
    if (wanted!.lease !== undefined && wanted!.expiresAtMs !== undefined && given!.lease !== undefined) {
      if (given!.lease <= (this.#leases.at(-1) ?? 0)) return expected;
      journal.renameLease(wanted!.lease, given!.lease);
      this.#leases.push(given!.lease);
      return { ...wanted, lease: given!.lease };
    }
    for (const key of ["ids", "journalIds"] as const) {
      const [before, now] = [wanted![key], given![key]];
      if (before === undefined || now === undefined || before.length !== now.length) continue;
      // One append may name a message twice.
      const renamed = new Map<number, number>();
      for (const [at, id] of before.entries()) {
        const chosen = now[at]!;
        if (id !== chosen && !renamed.has(id)) journal.renameRow(id, chosen);
        renamed.set(id, chosen);
        // The model answers a replayed commit with this list.
        before[at] = chosen;
      }
      return { ...wanted, [key]: now };
    }
    return expected;
  }

  /** Seen through the model: a load that is asked for beside a commit need not show it yet. */
  #refresh(session: Session): Planned {
    const space = this.model.space(session.space);
    session.seenSequence = space.sequence;
    session.seen = new Map(space.values);
    return NOTHING;
  }

  #send(request: CommitRequest): Planned {
    const expected = this.model.commit(request);
    this.#requests.push(request);
    if (expected.kind === "committed" && !expected.replayed) {
      const session = this.#sessions.find(({ name }) => name === request.session)!;
      for (const patch of request.patches) patchValues(session.seen, patch);
    }
    return { name: "commit", expected, call: (store) => store.commit(request) };
  }

  /** The same commit once more, or another under the same identity. */
  #sendAgain(back: number, spoilt: boolean): Planned {
    const request = this.#requests.at(-1 - back);
    if (request === undefined) return NOTHING;
    const { session, localSequence, space } = request;
    return this.#send(spoilt ? commitBy(session, localSequence, { space, digest: "spoilt" }) : request);
  }

  #request(action: CommitAction): CommitRequest {
    const session = this.#sessions[action.session]!;
    const reads = action.reads.map((pick) => this.#read(session, pick));
    const seen = new Map(session.seen);
    const patches = action.edits.map((edit) => {
      const id = DOCUMENTS[edit.document]!;
      const { operation, reach } = planEdit(edit, seen.get(id));
      const patch = { ...ref(id), operations: [operation] };
      patchValues(seen, patch);
      if (reach !== undefined) reads.push({ ...ref(id), path: reach, depth: "reach", sequence: session.seenSequence });
      return patch;
    });
    const localSequence = ++session.localSequence;
    const nodesRemoved = action.basisRemoved.map((n) => NODES[n]!);
    const basis = action.basis.map(({ node, reads }) => ({
      node: NODES[node]!,
      fingerprint: `run ${localSequence}`,
      inputs: onePerDocument(reads).map(({ document, path, depth }) => ({
        ...ref(DOCUMENTS[document]!),
        sequence: session.seenSequence,
        reads: [{ path: path.map((n) => KEYS[n]!), depth: depth === "reach" ? ("deep" as const) : depth }],
      })),
    }));
    return commitBy(session.name, localSequence, {
      space: session.space,
      digest: `payload ${localSequence}`,
      reads,
      patches,
      preconditions: action.preconditions.map((pick) => this.#precondition(session, pick)),
      dependsOn: action.dependsOn === 0 ? [] : [localSequence - action.dependsOn],
      entries: action.entries.map((pick) => this.#entry(pick)),
      settlements: action.settlements.flatMap((pick) => this.#settlement(pick)),
      due: action.due.map((pick) => this.#dueChange(pick)),
      basis: basis.filter(({ node }) => !nodesRemoved.includes(node)),
      basisRemoved: nodesRemoved,
      labels: action.labels.map(({ document, key, labels }) => ({
        ...ref(DOCUMENTS[document]!),
        path: [KEYS[key]!],
        labels: ["low", "high"].slice(0, labels),
      })),
    });
  }

  #read(session: Session, { document, path, depth }: ReadPick): CommitRequest["reads"][number] {
    const steps = path.map((n) => KEYS[n]!);
    return { ...ref(DOCUMENTS[document]!), path: steps, depth, sequence: session.seenSequence };
  }

  #precondition(
    { seenSequence }: Session,
    { kind, document, session, localSequence }: PreconditionPick,
  ): CommitRequest["preconditions"][number] {
    if (kind === "absent") return { kind, ...ref(DOCUMENTS[document]!) };
    if (kind === "members") return { kind, scope: ref("").scope, prefix: PREFIXES[document]!, sequence: seenSequence };
    return { kind, session: this.#sessions[session]!.name, localSequence };
  }

  /** The version of the consumer table that a decision names. */
  #decided(decided: SettlementPick["decided"]): { readonly consumers?: number } {
    const { version } = this.model.journal;
    return decided === "unsaid" ? {} : { consumers: decided === "now" ? version : version - 1 };
  }

  #entry({ content, which, kind, as, lease, decided }: EntryPick): JournalEntry {
    const start: JournalEntry["as"] =
      as === "claimed"
        ? { status: "claimed", lease: this.#lease(lease) }
        : as === "failed"
          ? { status: "failed", error: "from the start" }
          : as === "refused"
            ? { status: "done", ending: { outcome: "refused", reason: "not now" } }
            : as === "done"
              ? { status: "done", ...this.#decided(decided) }
              : { status: as };
    const earlier = content === "new" ? undefined : this.#entries.at(-1 - which);
    if (earlier === undefined) {
      const id = `message ${this.#entries.length}`;
      const entry = {
        message: message({ id, kind, data: { which } }),
        topic: "model.topic",
        source: "model",
        as: start,
      };
      this.#entries.push(entry);
      return entry;
    }
    if (content === "same") return { ...earlier, as: start };
    return { ...earlier, message: { ...earlier.message, data: "something else" }, as: start };
  }

  #settlement(pick: SettlementPick): Settlement[] {
    const { claim, outcome, mistake, delivery, decided } = pick;
    const held = this.#claims.at(-1 - claim);
    if (held === undefined) return [];
    const { row, lease, attempt } = held;
    return [
      {
        id: row.id,
        lease: mistake === "lease" ? lease + 1 : lease,
        attempt: mistake === "attempt" ? attempt + 1 : attempt,
        outcome: this.#outcome(pick),
        ...this.#decided(decided),
        ...(outcome === "waits"
          ? { deliveries: [{ subscriber: "s0", status: "waiting", attempts: 0, awaits: keyOf(pick.awaits) }] }
          : delivery === undefined
            ? {}
            : { deliveries: [this.#delivery(delivery)] }),
      },
    ];
  }

  #delivery({ subscriber, status, attempts, nextAttemptAtMs }: NonNullable<SettlementPick["delivery"]>): Delivery {
    const at = status === "retry" ? { nextAttemptAtMs: this.model.nowMs + nextAttemptAtMs } : {};
    return { subscriber: `s${subscriber}`, status, attempts, ...at };
  }

  #outcome({ outcome: kind, inMs, isTimed }: SettlementPick): Settlement["outcome"] {
    switch (kind) {
      case "waits":
        return { kind, error: "nobody runs it", ...(isTimed ? { atMs: this.model.nowMs + inMs } : {}) };
      case "noted":
        return { kind: "done", ending: { outcome: "unheard", reason: "a note" } };
      case "failed":
        return { kind, error: "it failed" };
      case "retry":
        return { kind, atMs: this.model.nowMs + inMs, error: "later" };
      default:
        return { kind };
    }
  }

  #dueChange({ op, kind, key, inMs, exact }: DuePick): DueChange {
    if (op === "take" && exact) return { op, kind, key: `k${key}`, was: { inMs } };
    if (op === "take" || op === "cancel") return { op, kind, key: `k${key}` };
    return { op, kind, key: `k${key}`, dueAtMs: this.model.nowMs + inMs, data: { inMs } };
  }

  /** Ids of rows by their place in the journal; some of no row. */
  #ids(places: readonly number[]): number[] {
    return places.map((place) => this.model.journal.rows[place - 1]?.id ?? place);
  }

  /** One of the newest leases, ended or not; a number that was never given while there is none. */
  #lease(back: number): number {
    return this.#leases.at(-1 - back) ?? 1;
  }
}

function consumerAt(at: number): Consumer {
  return { name: `c${at}`, pattern: at === 2 ? "model.*" : "model.topic" };
}

function keyOf(at: number): string {
  return consumerKey(consumerAt(at));
}

function onePerDocument(reads: readonly ReadPick[]): ReadPick[] {
  return reads.filter((read, n) => reads.findIndex(({ document }) => document === read.document) === n);
}
