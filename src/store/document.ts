/**
 * Names of documents. A document has the key `(space, scope, id)`; an address adds a path; a link is a value that
 * points to an address. Names are compared as text and used as keys, never as identifiers, paths or patterns.
 */
import type { Json, JsonObject } from "../message/json.ts";
import type { Path } from "../message/path.ts";

/** A document inside a known space. */
export interface DocumentRef {
  /** The owner of this instance: `"space"` for all users, `"user:…"`, `"session:…"`. */
  readonly scope: string;
  readonly id: string;
}

/** A path inside a document inside a known space. */
export interface Address extends DocumentRef {
  readonly path: Path;
}

/** The scope shared by all users of the space. */
export const SHARED_SCOPE = "space";

/** The map key of a document: unique because a NUL can be in neither part (`checkName`). */
export function documentKey(ref: DocumentRef): string {
  return `${ref.scope}\0${ref.id}`;
}

/** A link is stored as an object with this single key, so that any JSON reader recognizes it. */
export const LINK_KEY = "$link";

/** A reference to a place in a document. */
export interface Link {
  /** Absent for a link inside its own space. */
  readonly space?: string;
  readonly scope: string;
  readonly id: string;
  readonly path: Path;
}

/** A link as a JSON value. */
export function linkTo(link: Link): Json {
  const { space, scope, id, path } = link;
  return { [LINK_KEY]: space === undefined ? { scope, id, path: [...path] } : { space, scope, id, path: [...path] } };
}

/** The link if the value is one. */
export function asLink(value: Json | undefined): Link | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  // Almost no value is a link; this rejects wide objects without listing their keys.
  if (!Object.hasOwn(value, LINK_KEY) || Object.keys(value).length !== 1) return undefined;
  const target = (value as JsonObject)[LINK_KEY];
  if (typeof target !== "object" || target === null || Array.isArray(target)) return undefined;
  const { space, scope, id, path } = target as JsonObject;
  if (typeof scope !== "string" || typeof id !== "string" || !Array.isArray(path)) return undefined;
  if (!path.every((step) => typeof step === "string")) return undefined;
  if (space !== undefined && typeof space !== "string") return undefined;
  const link = { scope, id, path: [...(path as string[])] };
  return space === undefined ? link : { ...link, space };
}
