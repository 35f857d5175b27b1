/**
 * Labelling places, and taking labels off (decision 0010). A label holds in this process at once and is stored as soon as what is stored
 * there is known, so that nobody else's label is lost. Labels only grow; what brings them down is `declassify`, which is
 * journaled in the same commit. SPEC: F7.
 */
import type { Host } from "../host/host.ts";
import type { JsonObject } from "../message/json.ts";
import { event } from "../message/lineage.ts";
import type { Address } from "../scheduler/node.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import type { CommitOutcome } from "../store/commit.ts";
import { isWithin, join, type Label, LabelError, labelOf, PUBLIC } from "../store/label.ts";
import type { Transaction } from "../store/transaction.ts";
import { TransactionError } from "./transact.ts";

/** The topic under which every declassification is journaled; its type is `Label.Declassified`. */
const TOPIC = "label.declassified";

/** A cell, as far as labels need it. */
interface LabelledPlace {
  readonly address: Address;
  pull(): Promise<unknown>;
}

/** A removal of labels from data, with its reason. */
export type Declassification =
  /** Copies the present value to another cell, whatever that is labelled with. */
  | { readonly to: LabelledPlace; readonly reason: string }
  /** Takes names off the cell itself. */
  | { readonly remove: readonly string[]; readonly reason: string };

/** Labels a place with these names too; resolves when that is durable. */
export function labelPlace(scheduler: Scheduler, address: Address, names: readonly string[]): Promise<void> {
  const label = labelOf(names);
  if (isWithin(label, storedAt(address))) return Promise.resolve();
  if (scheduler.running !== undefined || scheduler.attempt !== undefined) {
    throw new LabelError(
      "LABEL_MISUSE",
      `${address} cannot be labelled by a run or a handler; label it where it is made`,
    );
  }
  scheduler.declareLabel(address, label);
  const stored = store(scheduler, address, label);
  stored.catch((error) => scheduler.report(error));
  return stored;
}

async function store(scheduler: Scheduler, address: Address, label: Label): Promise<void> {
  const { document, path } = address;
  const { replica } = address.home;
  const loaded = replica.load([document]);
  scheduler.background(loaded);
  await loaded;
  const stored = storedAt(address);
  if (isWithin(label, stored)) return;
  const transaction = replica.transaction();
  const { scope, id } = document;
  transaction.labels.push({ scope, id, path, labels: join(stored, label) });
  requireCommitted(await transaction.commit().outcome);
}

/** Lets out what is labelled; resolves when it is done and journaled. */
export async function declassify(
  host: Host,
  scheduler: Scheduler,
  cell: LabelledPlace,
  how: Declassification,
): Promise<void> {
  if (scheduler.running !== undefined || scheduler.attempt !== undefined) {
    throw new LabelError("LABEL_MISUSE", `${cell} cannot be declassified by a run or a handler; do it from plain code`);
  }
  if ("remove" in how) await removeNames(host, scheduler, cell, how.remove, how.reason);
  else await copyOut(host, scheduler, cell, how.to, how.reason);
}

async function removeNames(
  host: Host,
  scheduler: Scheduler,
  { address }: LabelledPlace,
  names: readonly string[],
  reason: string,
): Promise<void> {
  const { document, path } = address;
  const { replica } = address.home;
  using _held = held(address);
  await replica.load([document]);
  const stored = storedAt(address);
  const unknown = names.find((name) => !stored.includes(name));
  if (unknown !== undefined) {
    const where = "it may come from a place above or below, or from what it is computed of";
    throw new LabelError("LABEL_MISUSE", `${address} is not labelled "${unknown}" itself; ${where}`);
  }
  const transaction = replica.transaction();
  const { scope, id } = document;
  transaction.labels.push({ scope, id, path, labels: stored.filter((name) => !names.includes(name)) });
  journal(host, transaction, { space: replica.space, from: String(address), labels: [...names], reason });
  requireCommitted(await transaction.commit().outcome);
  scheduler.undeclareLabel(address, names);
}

async function copyOut(
  host: Host,
  scheduler: Scheduler,
  from: LabelledPlace,
  to: LabelledPlace,
  reason: string,
): Promise<void> {
  using _source = held(from.address);
  const value = await from.pull();
  const labels = [...scheduler.labelAt(from.address)];
  const { document, path } = to.address;
  const { replica } = to.address.home;
  using _target = held(to.address);
  await replica.load([document]);
  const transaction = replica.transaction();
  if (value === undefined) transaction.remove(document, path);
  else transaction.write(document, path, value);
  journal(host, transaction, { space: replica.space, from: String(from), to: String(to), labels, reason });
  requireCommitted(await transaction.commit().outcome);
}

function journal(host: Host, transaction: Transaction, data: JsonObject): void {
  const message = event(host, "Label.Declassified", data);
  transaction.entries.push({ message, topic: TOPIC, source: "labels", as: { status: "pending" } });
}

/** Keeps the document of an address here until it is disposed of. */
function held(address: Address): Disposable {
  address.hold();
  return { [Symbol.dispose]: () => address.letGo() };
}

function storedAt({ document, path }: Address): Label {
  return document.labels?.stored(path) ?? PUBLIC;
}

function requireCommitted(outcome: CommitOutcome): void {
  if (outcome.kind === "rejected") throw new TransactionError(outcome);
}
