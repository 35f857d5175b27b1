/**
 * The tombstone of an erased text. The hash of a journal row covers digests of payload and metadata, not their texts: a
 * tombstone contains the digest of the replaced text, so that the chain still verifies. SPEC: S134.
 */
import { hash } from "node:crypto";

const KEY = "$erased";
const BEGIN = `{"${KEY}":"`;
const END = '"}';
const DIGEST_LENGTH = 43;

/** SHA-256 of a text, or of the text that a tombstone replaces. */
export function digestOf(text: string): string {
  return erasedDigest(text) ?? hash("sha256", text, "base64url");
}

export function tombstoneOf(text: string): string {
  return `${BEGIN}${digestOf(text)}${END}`;
}

/** The digest in a tombstone; undefined for any other text. */
export function erasedDigest(text: string): string | undefined {
  if (text.length !== BEGIN.length + DIGEST_LENGTH + END.length || !text.startsWith(BEGIN)) return undefined;
  return text.slice(BEGIN.length, -END.length);
}
