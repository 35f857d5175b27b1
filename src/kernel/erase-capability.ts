/**
 * `Kernel.Erase`: erases the data of a subject while the kernel runs. SPEC: K123-K125, decision 0016.
 *
 * A handler asks for it with its own commit: `tx.erase(subject)`. The command is journaled with the commit and
 * handled after it, also after a crash. Its own row loses the subject with the erasure; if the process dies before
 * the file is rebuilt, the command is handed over again with a tombstone, and only rebuilds.
 */
import { recordAction } from "../bus/audit.ts";
import type { Host } from "../host/host.ts";
import { ERASE_SUBJECT_LENGTH_MIN } from "../limits.ts";
import type { Capability } from "../loop/capability.ts";
import { capability } from "../loop/define-capability.ts";
import { dataSchema } from "../loop/message-schema.ts";
import { isCleanText, type Json } from "../message/json.ts";
import type { Erased } from "../store/erase.ts";
import { eraseFromFile } from "../store/sqlite/erase.ts";
import type { Store } from "../store/store.ts";
import type { DataDirectory } from "./data-directory.ts";
import { InstanceLock } from "./instance-lock.ts";
import { DURABILITY } from "./open-store.ts";

interface Subject {
  readonly subject?: string;
  readonly by?: string;
  /** The command was erased already. */
  readonly $erased?: string;
}

export function eraseCapability({ host, store }: { readonly host: Host; readonly store: Store }): Capability {
  return capability({
    description: "erases the data of a subject",
    // A crash may leave an erasure half done, and erasing twice is harmless.
    idempotent: true,
    durable: "unawaited",
    timeoutMs: 0,
    commands: {
      "Kernel.Erase": {
        description: "erases documents, messages and receipts of a subject, for good",
        input: subjectSchema,
        handle: async ({ subject, by }: Subject, _, { metadata }) => {
          // No text mentions a new id: an erasure of it only rebuilds the file.
          const erased = await store.erase({ subject: subject ?? host.id(), apply: true, askedBy: metadata.id });
          const { documents, rows, receipts } = erased;
          // A client of HTTP acts in the name of its token.
          const actor = typeof metadata["principal"] === "string" ? metadata["principal"] : by;
          if (subject !== undefined)
            await recordAction({ host, store }, { action: "erase", by: actor, documents, rows, receipts });
          return JSON.parse(JSON.stringify(erased)) as Json;
        },
      },
    },
  });
}

const subjectSchema = dataSchema<Subject>(
  (data) => {
    const { subject, by, $erased } = (data ?? {}) as { subject?: unknown; by?: unknown; $erased?: unknown };
    if (subject === undefined && typeof $erased === "string") return undefined;
    if (typeof subject !== "string" || subject.length < ERASE_SUBJECT_LENGTH_MIN || !isCleanText(subject))
      return `subject: must be a text of at least ${ERASE_SUBJECT_LENGTH_MIN} characters`;
    return by === undefined || typeof by === "string" ? undefined : "by: must be a text";
  },
  {
    type: "object",
    properties: { subject: { type: "string", minLength: ERASE_SUBJECT_LENGTH_MIN }, by: { type: "string" } },
    required: ["subject"],
  },
);

export type { Erased };

/** Finds a subject in a data directory's store, while no kernel runs there. SPEC: K68. */
export function findSubject(host: Host, file: string, subject: string): Erased {
  return eraseFromFile({ path: file, host, durability: DURABILITY }, subject, false);
}

export function eraseOffline(host: Host, file: string, directory: DataDirectory, subject: string): Erased {
  using _lock = InstanceLock.take(directory);
  return eraseFromFile({ path: file, host, durability: DURABILITY }, subject, true);
}
