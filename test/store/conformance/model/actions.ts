/**
 * Actions of a random history, as small numbers that get their meaning when they run ("the third claim handed out"), so
 * that every shortened history is valid.
 */
import fc from "fast-check";

const small = fc.nat(5);
const ms = fc.constantFrom(0, 0, 1, 999, 1_000, 1_001);

/** A change of one document, as far as the session sees it. */
const edit = fc.record({
  document: fc.nat(2),
  op: fc.constantFrom("set-root", "set-child", "set-grandchild", "delete-child", "delete-root", "splice"),
  key: fc.nat(3),
  innerKey: fc.nat(3),
  value: fc.nat(8),
});
export type Edit = typeof edit extends fc.Arbitrary<infer T> ? T : never;

const read = fc.record({
  document: fc.nat(2),
  path: fc.array(fc.nat(3), { maxLength: 2 }),
  depth: fc.constantFrom("deep", "shallow", "reach"),
});
export type ReadPick = typeof read extends fc.Arbitrary<infer T> ? T : never;

const entry = fc.record({
  /** Another message, one that was sent before, or one that contradicts it. */
  content: fc.oneof(
    { weight: 6, arbitrary: fc.constant("new" as const) },
    { weight: 2, arbitrary: fc.constant("same" as const) },
    { weight: 1, arbitrary: fc.constant("other" as const) },
  ),
  which: small,
  kind: fc.constantFrom("event", "event", "event", "command", "query"),
  as: fc.constantFrom("pending", "pending", "pending", "claimed", "done", "failed", "refused"),
  decided: fc.constantFrom("now", "before", "unsaid"),
  lease: small,
});
export type EntryPick = typeof entry extends fc.Arbitrary<infer T> ? T : never;

const settlement = fc.record({
  /** Counted from the newest claim back. */
  claim: fc.nat(3),
  outcome: fc.constantFrom(
    "partial",
    "begun",
    "left",
    "done",
    "noted",
    "failed",
    "failed",
    "retry",
    "retry",
    "waits",
    "waits",
    "release",
  ),
  inMs: ms,
  mistake: fc.oneof(
    { weight: 8, arbitrary: fc.constant("none" as const) },
    { weight: 1, arbitrary: fc.constantFrom("lease", "attempt") },
  ),
  delivery: fc.option(
    fc.record({
      subscriber: fc.nat(1),
      status: fc.constantFrom("done", "failed", "retry"),
      attempts: small,
      nextAttemptAtMs: ms,
    }),
    { nil: undefined },
  ),
  /** Which consumer an outcome of `waits` names, and whether it waits for a time too. */
  awaits: fc.nat(2),
  isTimed: fc.boolean(),
  decided: fc.constantFrom("now", "now", "now", "before", "unsaid"),
});
export type SettlementPick = typeof settlement extends fc.Arbitrary<infer T> ? T : never;

const dueChange = fc.record({
  op: fc.constantFrom("put", "put", "add", "take", "cancel"),
  kind: fc.constantFrom("timer", "cron"),
  key: fc.nat(2),
  inMs: fc.constantFrom(0, 1, 2),
  /** Whether a take names the data: those of `inMs`. */
  exact: fc.boolean(),
});
export type DuePick = typeof dueChange extends fc.Arbitrary<infer T> ? T : never;

const precondition = fc.record({
  kind: fc.constantFrom("absent", "originCommitted", "members", "members"),
  document: fc.nat(3),
  session: fc.nat(3),
  localSequence: fc.integer({ min: 1, max: 4 }),
});
export type PreconditionPick = typeof precondition extends fc.Arbitrary<infer T> ? T : never;

/** A list that is empty most of the time. */
function rarely<T>(one: fc.Arbitrary<T>): fc.Arbitrary<T[]> {
  return fc.oneof(
    { weight: 5, arbitrary: fc.constant<T[]>([]) },
    { weight: 1, arbitrary: fc.array(one, { minLength: 1, maxLength: 2 }) },
  );
}

const session = fc.nat(3);

const action = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant("commit" as const),
      session,
      edits: fc.array(edit, { maxLength: 3 }),
      reads: fc.array(read, { maxLength: 2 }),
      preconditions: rarely(precondition),
      /** How many commits back in its session; 0 for none. */
      dependsOn: fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 1, 2),
      entries: rarely(entry),
      settlements: rarely(settlement),
      due: rarely(dueChange),
      basis: rarely(fc.record({ node: fc.nat(2), reads: fc.array(read, { maxLength: 2 }) })),
      basisRemoved: rarely(fc.nat(2)),
      labels: rarely(fc.record({ document: fc.nat(2), key: fc.nat(3), labels: fc.nat(2) })),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("refresh" as const), session }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("send again" as const), back: small, spoilt: fc.boolean() }) },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("append" as const), entries: fc.array(entry, { maxLength: 3 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("open lease" as const), forMs: fc.constantFrom(1_000, 20_000) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("renew lease" as const), lease: small, forMs: fc.constantFrom(0, 1_000) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("close lease" as const), lease: small }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("claim" as const),
      lease: fc.nat(2),
      limit: fc.nat(4),
      kinds: fc.constantFrom<("event" | "command")[]>(["event"], ["event"], ["command"], ["event", "command"], []),
      consumers: fc.subarray([0, 1, 2]),
      suspects: fc.option(fc.record({ from: fc.integer({ min: 1, max: 2 }), limit: fc.nat(2) }), { nil: undefined }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("settle" as const), settlements: fc.array(settlement, { maxLength: 3 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("recover" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("requeue" as const),
      ids: fc.array(fc.nat(12), { maxLength: 6 }),
      onlyFor: fc.option(fc.nat(1), { nil: undefined }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("declare consumers" as const),
      consumers: fc.subarray([0, 1, 2]),
      lease: fc.nat(2),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("remove consumer" as const),
      consumer: fc.nat(2),
      except: fc.option(fc.nat(2), { nil: undefined }),
      limit: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("conclude" as const),
      ids: fc.array(fc.nat(12), { maxLength: 6 }),
      from: fc.constantFrom("failed", "pending"),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("release retries" as const), inMs: fc.constantFrom(0, 1_000) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("retain" as const),
      agoMs: fc.option(ms, { nil: undefined }),
      keepSettled: fc.option(fc.nat(3), { nil: undefined }),
      limit: fc.nat(4),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("change due" as const), changes: fc.array(dueChange, { maxLength: 3 }) }),
  },
);
export type Action = typeof action extends fc.Arbitrary<infer T> ? T : never;

/** Actions that are asked for at once, a move of the clock, or a restart. */
const step = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant("act" as const),
      store: fc.nat(1),
      actions: fc.array(action, { minLength: 1, maxLength: 3 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("clock" as const), byMs: fc.constantFrom(1, 999, 1_000, 4_000, -3_000) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const) }) },
);
export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A row to claim and a lease to claim it under; otherwise half of all histories would have an idle journal. */
export const PROLOGUE: Step = {
  kind: "act",
  store: 0,
  actions: [
    { kind: "open lease", forMs: 20_000 },
    {
      kind: "append",
      entries: Array.from({ length: 6 }, (_, n) => ({
        content: "new",
        which: 0,
        kind: n === 3 ? "command" : "event",
        as: n === 5 ? "failed" : "pending",
        decided: "unsaid",
        lease: 0,
      })),
    },
  ],
};

export const histories: fc.Arbitrary<Step[]> = fc.array(step, { maxLength: 40, size: "max" });
