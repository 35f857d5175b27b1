/**
 * What tells two versions of a node's code apart: the text of its function, and a version that its owner gives. Code that the function calls,
 * and what it has captured, is not in its text: who changes that says so with the version.
 */
import { FINGERPRINTS_REMEMBERED_MAX } from "../limits.ts";
import { hashText } from "../message/sha256.ts";
import type { Persisted } from "./node-record.ts";

const DIGITS = 16;

export class Fingerprints {
  readonly #version: string;
  /** By text: the functions of a program are few, the nodes that run them many. What names its inputs has a text of its own. */
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
