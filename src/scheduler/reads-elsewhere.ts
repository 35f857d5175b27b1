/**
 * What a transaction has read in spaces that its commit is not of. No commit of one space can rest on another (decision 0006), so nothing of it is
 * claimed; but it is waited for like everything else: until it is here (R46) and, where the transaction has written nothing or thrown, until
 * it is confirmed (R28).
 */
import type { CommitOutcome, ReadClaim } from "../store/commit.ts";
import { sequenceSeen } from "../store/commit-request.ts";
import type { Replica } from "../store/replica.ts";
import type { Address, DocumentIndex } from "./address.ts";

export class ReadsElsewhere {
  /** Documents that are not here; they are being loaded. */
  missing: Set<DocumentIndex> | undefined;
  /** What was read, and whether only shallow. */
  readonly #reads = new Map<Address, boolean>();

  read(address: Address, shallow: boolean): void {
    this.#reads.set(address, shallow && this.#reads.get(address) !== false);
    const { home } = address;
    if (home.document.isKnown) return;
    if (home.document.state === "absent") home.replica.touch(home.document);
    this.missing ??= new Set();
    this.missing.add(home);
  }

  /** Whether what was read stands, space by space, where it is not confirmed yet. */
  standings(): readonly Promise<CommitOutcome>[] {
    const bySpace = new Map<Replica, ReadClaim[]>();
    for (const [{ home, path }, shallow] of this.#reads) {
      const { replica, document } = home;
      const { scope, id } = document;
      const sequence = sequenceSeen(document, replica.position);
      const claim: ReadClaim = { scope, id, path, depth: shallow ? "shallow" : "deep", sequence };
      const claims = bySpace.get(replica);
      if (claims === undefined) bySpace.set(replica, [claim]);
      else claims.push(claim);
    }
    return [...bySpace].flatMap(([replica, claims]) => replica.standingOf(claims) ?? []);
  }
}
