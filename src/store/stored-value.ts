/** What the store has of a document, as a replica learns it: nothing tentative. */
import type { Json } from "../message/json.ts";
import type { DocumentRef } from "./document.ts";
import type { Replica } from "./replica.ts";

/** The value of a document that the store has: not before what is pending on it here is confirmed or has fallen. */
export async function pullStored(replica: Replica, ref: DocumentRef): Promise<Json | undefined> {
  const letGo = replica.observe(ref);
  try {
    for (;;) {
      await replica.load([ref]);
      const { pending } = replica.touch(ref);
      if (pending.length === 0) return replica.peek(ref);
      await Promise.all(pending.map(({ commit }) => commit.outcome));
      // Answered, and not yet seen in the feed.
      if (replica.touch(ref).pending.length > 0) await replica.catchUp();
    }
  } finally {
    letGo();
  }
}
