/**
 * Work that an observer begins while the state it has read is not confirmed yet: it is held until that is known, and dropped where
 * the state is rolled back. SPEC: R62.
 */
import { MillraceError } from "./millrace-error.ts";

type DroppedErrorCode = "DROPPED";

export class DroppedError extends MillraceError<DroppedErrorCode> {
  override readonly name = "DroppedError";
}

/** Begins the work at once where `standing` is undefined, else when it resolves with true. */
export function whenItStands<T>(standing: Promise<boolean> | undefined, work: () => Promise<T>): Promise<T> {
  if (standing === undefined) return work();
  const held = standing.then((stands) => {
    if (stands) return work();
    throw new DroppedError(
      "DROPPED",
      "the observer that began this had read state that was rolled back; it runs again with the present state",
    );
  });
  // Observers seldom await it, and a drop is no failure.
  held.catch(() => undefined);
  return held;
}
