/**
 * Records in the journal that a command of a transactional handler failed or was refused, because no commit brings
 * its row. If the command is sent again and succeeds, its row becomes an ordinary done row. SPEC: L40, L51.
 */

import type { BusObserver } from "../bus/observation.ts";
import type { SpawnContext } from "../loop/capability.ts";
import type { Message } from "../message/envelope.ts";
import { errorText } from "../message/error-data.ts";
import type { JournalEntry } from "../store/journal.ts";
import type { Store } from "../store/store.ts";

export interface NotingParts {
  readonly store: Store;
  /** The capability that handled it. */
  readonly source: string;
  readonly observe: BusObserver;
}

export function failuresNoted({ store, source, observe }: NotingParts): NonNullable<SpawnContext["noteFailed"]> {
  return async (message: Message, error: unknown, kind = "failed") => {
    const as: JournalEntry["as"] =
      kind === "failed"
        ? { status: "failed", error: errorText(error) }
        : { status: "done", ending: { outcome: "refused", reason: errorText(error) } };
    const trouble = await store.append([{ message, topic: message.type, source, as }]).then(
      // Ignored: the message exists with other content or is too large for a row. The requester gets its answer
      // anyway.
      (outcome) => (outcome.kind === "rejected" && outcome.class !== "permanent" ? outcome.message : undefined),
      (thrown: unknown) => errorText(thrown),
    );
    if (trouble !== undefined)
      observe({ kind: "store-trouble", doing: "noting that a command failed", error: trouble });
  };
}
