/**
 * Work started by an observer while the state it has read is unconfirmed: it is held until the confirmation, and
 * dropped if the state is rolled back. SPEC: R62.
 */
import { MillraceError } from "./millrace-error.ts";

type DroppedErrorCode = "DROPPED";

/** Work of an observer was dropped, because the state that it had read was rolled back. */
export class DroppedError extends MillraceError<DroppedErrorCode> {
  override readonly name = "DroppedError";
}

/** Starts the work at once if `standing` is undefined, else when it resolves with true. */
export function whenItStands<T>(standing: Promise<boolean> | undefined, work: () => Promise<T>): Promise<T> {
  if (standing === undefined) return work();
  const held = standing.then((stands) => {
    if (stands) return work();
    throw new DroppedError(
      "DROPPED",
      "the observer that began this had read state that was rolled back; it runs again with the present state",
    );
  });
  // Observers rarely await it, and a drop is not a failure.
  held.catch(() => undefined);
  return held;
}
