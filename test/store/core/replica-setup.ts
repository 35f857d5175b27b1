/** A replica over a line that a test controls, and its neighbours on the same disk. */
import { systemHost } from "../../../src/host/system-host.ts";
import type { Json } from "../../../src/message/json.ts";
import type { Path } from "../../../src/message/path.ts";
import type { Change, Notification } from "../../../src/store/change.ts";
import type { CommitOutcome, CommitRequest } from "../../../src/store/commit.ts";
import type { DocumentRef } from "../../../src/store/document.ts";
import { MemoryDisk } from "../../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../../src/store/memory/memory-store.ts";
import type { RejectionClass, RejectionReason } from "../../../src/store/rejection.ts";
import { Replica } from "../../../src/store/replica.ts";
import { StoreError } from "../../../src/store/store.ts";
import { type Fault, FaultyLine, Gate, type LineCall } from "../faulty-store.ts";

export const SPACE = "s";
export const DOC: DocumentRef = { scope: "space", id: "doc" };
export const OTHER: DocumentRef = { scope: "space", id: "other" };

const host = systemHost();

/** Lets every promise chain run out. */
export async function quiet(): Promise<void> {
  await host.yield();
  await host.yield();
}

export class Site {
  readonly line: FaultyLine;
  readonly replica: Replica;
  readonly notifications: Notification[] = [];

  constructor(line: FaultyLine, replica: Replica) {
    this.line = line;
    this.replica = replica;
    replica.subscribe((notification) => void this.notifications.push(notification));
  }

  /** One transaction that puts one value, settled. */
  async put(ref: DocumentRef, path: Path, value: Json): Promise<CommitOutcome> {
    if (path.length > 0) await this.replica.load([ref]);
    const outcome = await this.write(ref, path, value).outcome;
    await quiet();
    return outcome;
  }

  /** One transaction that puts one value, on its way. */
  write(ref: DocumentRef, path: Path, value: unknown) {
    const transaction = this.replica.transaction();
    transaction.write(ref, path, value);
    return transaction.commit();
  }

  /** Makes all further calls of a method wait for the gate: their answers, or the calls themselves. */
  hold(method: LineCall["method"], what: "answered" | "arrives" = "answered"): Gate {
    const gate = new Gate();
    const { plan } = this.line;
    this.line.plan = (call) => ({ ...plan(call), ...(call.method === method ? { [what]: gate.opened } : {}) });
    return gate;
  }

  /** A fault for the next call of a method. */
  next(method: LineCall["method"], fault: Fault): void {
    const { plan } = this.line;
    let isOver = false;
    this.line.plan = (call) => {
      if (isOver || call.method !== method) return plan(call);
      isOver = true;
      return { ...plan(call), ...fault };
    };
  }

  /** The changes told since the last time, with their kinds. */
  told(): (readonly [Notification["kind"], string, Json | undefined, Json | undefined])[] {
    return this.notifications
      .splice(0)
      .flatMap(({ kind, changes }) =>
        changes.map((change) => [kind, where(change), change.before, change.after] as const),
      );
  }

  get arrived(): readonly CommitRequest[] {
    return this.line.arrived;
  }
}

function where({ id, path }: Change): string {
  return [id, ...path].join("/");
}

export interface SetupOptions {
  readonly residentDocumentsMax?: number;
  readonly changesKept?: number;
}

export async function setup({ residentDocumentsMax = 100, changesKept = 1_000 }: SetupOptions = {}) {
  const disk = new MemoryDisk({ changesKept });
  const open = async () => {
    const line = new FaultyLine(memoryStore({ host, disk }));
    return new Site(line, await Replica.open({ store: line.store, space: SPACE, host, residentDocumentsMax }));
  };
  const here = await open();
  return { here, there: await open(), open, disk, host };
}

/** The class and reason of a rejection, or "committed". */
export function fate(outcome: CommitOutcome): "committed" | `${RejectionClass} ${RejectionReason}` {
  return outcome.kind === "committed" ? "committed" : `${outcome.class} ${outcome.reason}`;
}

/** The code and message of the StoreError that an act throws. */
export function refusal(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof StoreError) return `${error.code}: ${error.message}`;
    throw error;
  }
  return "was not refused";
}
