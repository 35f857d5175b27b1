/**
 * Reads the stored value of a document through a replica, without pending commits.
 */
import type { Json } from "../message/json.ts";
import type { DocumentRef } from "./document.ts";
import type { Replica } from "./replica.ts";

/** The stored value of a document; waits until its pending commits are confirmed or rolled back. */
export async function pullStored(replica: Replica, ref: DocumentRef): Promise<Json | undefined> {
  const letGo = replica.observe(ref);
  try {
    for (;;) {
      await replica.load([ref]);
      const { pending } = replica.touch(ref);
      if (pending.length === 0) return replica.peek(ref);
      await Promise.all(pending.map(({ commit }) => commit.outcome));
      // Answered, but not yet seen in the feed.
      if (replica.touch(ref).pending.length > 0) await replica.catchUp();
    }
  } finally {
    letGo();
  }
}
