/**
 * Request ids from `Idempotency-Key`. The id depends on the principal, so that one cannot get the answer of another
 * under a key that it knows. SPEC: W21.
 */
import { contentId } from "../message/content-id.ts";
import { ID_LENGTH_MAX } from "../message/envelope.ts";
import { Failure } from "../message/error-data.ts";
import { idFrom, timeInId } from "../message/id-time.ts";
import type { Principal } from "./principal.ts";

/** The id of a request with this key. A key that carries a time gives an id with the same time. */
export function idOfKey({ name }: Principal, key: string): string {
  const text = key.startsWith('"') && key.endsWith('"') ? key.slice(1, -1) : key;
  if (text === "" || text.length > ID_LENGTH_MAX)
    throw new Failure(400, `Idempotency-Key: takes 1 to ${ID_LENGTH_MAX} characters`);
  const madeAt = timeInId(text);
  const hash = contentId(["http", name, text]);
  return madeAt === undefined ? hash : idFrom(madeAt, hash);
}
