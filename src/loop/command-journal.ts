/**
 * The journal of commands as the loop uses it: a command is durable before it is handled, and is delivered until it is
 * settled, by this process or the next. The kernel implements it with a bus.
 */
import type { Message } from "../message/envelope.ts";
import type { JournalStatus, Settlement } from "../store/journal.ts";
import type { HandlerFailure } from "../work/handler-options.ts";

/** A journal for commands, as the loop needs it. */
export interface CommandJournal {
  /**
   * Resolves when the command is durable; later, `take` delivers it. If it was journaled before, resolves with its
   * status: a command that is done or failed is not delivered again.
   */
  keep(message: Message, capability: string): Promise<KeptBefore | undefined>;
  /** The status of a journaled command, by its id; undefined if the row was removed. */
  find(id: string): Promise<KeptBefore | undefined>;
  /** Calls back whenever another process may have settled commands, until the returned function is called. */
  onForeignChange?(listener: () => void): () => void;
  /**
   * Closes the row of a message that is not handed out: "withdrawn"; "underway" if a process holds it; "gone" if it is
   * settled or unknown.
   */
  withdraw?(id: string): Promise<WithdrawResult>;
  /** Resolves when a message is settled, or after a bounded time. */
  settled?(id: string): Promise<void>;
  /** The ids of unsettled messages of a type that one request has caused. */
  unsettledOf?(request: string, type: string): Promise<readonly string[]>;
  /** Notes the refusal of a command without a waiting requester, as a dead letter that can be requeued. */
  refused?(message: Message, reason: string): void;
  /**
   * `deliver` is called for every command of the type and resolves when it was handled. The command fails with the
   * error that `deliver` throws; after a `Failure` of 503 or a `RetryLater` it is delivered again. `died` is called for
   * a command that is failed because processes died with it.
   */
  take(type: string, capability: string, deliver: DeliverCommand, died: CommandDied): void;
}

/** One delivery of a command. */
export interface CommandDelivery {
  /** How many processes died while they held it. */
  readonly deaths: number;
  /** Counts the deliveries from 1. */
  readonly attempt: number;
  /** The settlement that fails it, for a commit of its handler. */
  failing(error: string): Settlement;
}

export type DeliverCommand = (message: Message, delivery: CommandDelivery) => Promise<void>;
/** Rejects with the error of `onFailed`, or with `Settled`. */
export type CommandDied = (message: Message, failure: HandlerFailure, delivery: CommandDelivery) => Promise<void>;

/** The status of a command that is in the journal already. */
export interface KeptBefore {
  readonly status: JournalStatus;
  /** Why it has failed. */
  readonly error?: string;
}

export type WithdrawResult = "withdrawn" | "underway" | "gone";
