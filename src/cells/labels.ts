/**
 * Adds labels to places, and removes them (decision 0010). A label is effective in this process at once. It is stored
 * when the stored label is loaded, so that labels of other processes are not lost. Labels only grow; only `declassify`
 * removes names, and is journaled in the same commit. SPEC: F7.
 */
import type { Host } from "../host/host.ts";
import type { JsonObject } from "../message/json.ts";
import { eventMessage } from "../message/lineage.ts";
import type { NodeAddress } from "../scheduler/node.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import type { CommitOutcome } from "../store/commit.ts";
import { isWithin, join, type Label, LabelError, labelOf, PUBLIC } from "../store/label.ts";
import type { Transaction } from "../store/transaction.ts";
import { TransactionError } from "./transact.ts";

/** The topic under which every declassification is journaled; its type is `Label.Declassified`. */
const TOPIC = "label.declassified";

/** A cell, as far as labels need it. */
interface LabelledPlace {
  readonly address: NodeAddress;
  pull(): Promise<unknown>;
}

/** A removal of labels from data, with its reason. */
export type Declassification =
  /** Copies the present value to another cell, with the labels of that cell. */
  | { readonly to: LabelledPlace; readonly reason: string }
  /** Removes names from the label of the cell itself. */
  | { readonly remove: readonly string[]; readonly reason: string };

/** Adds names to the label of a place; resolves when that is durable. */
export function labelPlace(scheduler: Scheduler, address: NodeAddress, names: readonly string[]): Promise<void> {
  const label = labelOf(names);
  if (isWithin(label, storedAt(address))) return Promise.resolve();
  if (scheduler.running !== undefined || scheduler.attempt !== undefined) {
    throw new LabelError(
      "LABEL_MISUSE",
      `${address} cannot be labelled by a run or a handler; label it where it is made`,
    );
  }
  scheduler.parts.flow.declare(address, label);
  const stored = store(scheduler, address, label);
  stored.catch((error) => scheduler.parts.introspection.report(error));
  return stored;
}

async function store(scheduler: Scheduler, address: NodeAddress, label: Label): Promise<void> {
  const { document, path } = address;
  const { replica } = address.home;
  const loaded = replica.load([document]);
  scheduler.parts.quiescence.background(loaded);
  await loaded;
  const stored = storedAt(address);
  if (isWithin(label, stored)) return;
  const transaction = replica.transaction();
  const { scope, id } = document;
  transaction.labels.push({ scope, id, path, labels: join(stored, label) });
  requireCommitted(await transaction.commit().outcome);
}

/** Copies a labelled value, or removes names of a label; resolves when the commit with its journal row is durable. */
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
    const where = "the label may come from a place above or below, or from an input of the computed value";
    throw new LabelError("LABEL_MISUSE", `${address} is not labelled "${unknown}" itself; ${where}`);
  }
  const transaction = replica.transaction();
  const { scope, id } = document;
  transaction.labels.push({ scope, id, path, labels: stored.filter((name) => !names.includes(name)) });
  journal(host, transaction, { space: replica.space, from: String(address), labels: [...names], reason });
  requireCommitted(await transaction.commit().outcome);
  scheduler.parts.flow.undeclare(address, names);
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
  const message = eventMessage(host, "Label.Declassified", data);
  transaction.entries.push({ message, topic: TOPIC, source: "labels", as: { status: "pending" } });
}

/** Keeps the document of an address in memory until the result is disposed. */
function held(address: NodeAddress): Disposable {
  address.hold();
  return { [Symbol.dispose]: () => address.letGo() };
}

function storedAt({ document, path }: NodeAddress): Label {
  return document.labels?.stored(path) ?? PUBLIC;
}

function requireCommitted(outcome: CommitOutcome): void {
  if (outcome.kind === "rejected") throw new TransactionError(outcome);
}
