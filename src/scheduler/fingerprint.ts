/**
 * Tells versions of a node's code apart by the text of its function and a version that the application gives. The text
 * does not contain called functions and captured values; after a change of these, the application changes the version.
 */
import { FINGERPRINTS_REMEMBERED_MAX } from "../limits.ts";
import { hashText } from "../message/sha256.ts";
import type { Persisted } from "./node-state.ts";

const DIGITS = 16;

export class Fingerprints {
  readonly #version: string;
  /** By text: a program has few functions and many nodes. Code that declares its inputs has its own text. */
  readonly #known = new Map<string, Persisted>();

  constructor(version: string) {
    this.#version = version;
  }

  of(code: (...parameters: never[]) => unknown, declared?: string): Persisted {
    const text = declared ?? code.toString();
    let persisted = this.#known.get(text);
    if (persisted === undefined) {
      persisted = { fingerprint: hashText(`${this.#version}\n${text}`).slice(0, DIGITS) };
      if (this.#known.size >= FINGERPRINTS_REMEMBERED_MAX) this.#known.clear();
      this.#known.set(text, persisted);
    }
    return persisted;
  }
}
