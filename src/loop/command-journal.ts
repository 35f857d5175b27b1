/**
 * The journal for commands as the loop needs it: a command is durable before it is handled, and is delivered until it is settled, by this
 * process or by the next. The kernel puts a bus here.
 */
import type { Message } from "../message/envelope.ts";
import type { JournalStatus } from "../store/journal.ts";

export interface CommandJournal {
  /**
   * Resolves when the command is durable; it is delivered after that, through `take`. Where it was there already, with what has become of
   * it: done or failed it is not delivered again.
   */
  keep(message: Message, capability: string): Promise<KeptBefore | undefined>;
  /** What has become of a command that was kept, by its id; undefined where the journal has it no more. */
  find(id: string): Promise<KeptBefore | undefined>;
  /** Notes that a command was refused of which nobody else hears: it is among the failures, and can be put back. */
  refused?(message: Message, reason: string): void;
  /**
   * `deliver` is called for every command of the type, with the number of processes that died while they held it, and resolves when it was
   * handled; what it throws fails the command, and a `Failure` of 503 brings it back later.
   */
  take(type: string, capability: string, deliver: (message: Message, deaths: number) => Promise<void>): void;
}

/** The status of a command that is in the journal already. */
export interface KeptBefore {
  readonly status: JournalStatus;
  /** Why it has failed. */
  readonly error?: string;
}
