/**
 * A 64-bit digest of a commit's payload. It detects a reused commit identity, which only a programming mistake can
 * cause, so it need not be cryptographic. Every commit pays for it, so it walks the values instead of serializing them.
 */
import type { Json } from "../message/json.ts";
import type { DocumentPatch } from "./commit.ts";
import type { JournalEntry, Settlement } from "./journal.ts";
import type { PathOperation } from "./path-operation.ts";
import type { CommitExtras } from "./transaction.ts";

/** Any JSON value, with the optional fields of our own records. */
type Digestible = Json | undefined | object;

export class PayloadDigest {
  #a = 0xdeadbeef;
  #b = 0x41c6ce57;

  /** Avoids listing the keys of records with a known shape. */
  addPatches(patches: readonly DocumentPatch[]): void {
    this.#mix(patches.length, 6);
    for (const { scope, id, operations } of patches) {
      this.#text(scope);
      this.#text(id);
      this.#mix(operations.length, 6);
      for (const operation of operations) this.#operation(operation);
    }
  }

  /** Lists are digested by position; most are empty. */
  addExtras(extras: Readonly<CommitExtras>): void {
    this.#list(extras.preconditions);
    this.#mix(extras.entries.length, 6);
    for (const entry of extras.entries) this.#entry(entry);
    this.#mix(extras.settlements.length, 6);
    for (const settlement of extras.settlements) this.#settlement(settlement);
    this.#list(extras.due);
    this.#list(extras.basis);
    this.#list(extras.basisRemoved);
    this.#list(extras.labels);
    if (extras.statements.length > 0) this.#list(extras.statements);
  }

  /** A message is identified by its id: the journal accepts no second message with it. */
  #entry({ message, topic, source, as }: JournalEntry): void {
    this.#text(message.metadata.id);
    this.#text(topic);
    this.#text(source);
    this.#text(as.status);
  }

  #settlement(settlement: Settlement): void {
    const { id, lease, attempt, outcome, deliveries } = settlement;
    this.add(id);
    this.add(lease);
    this.add(attempt);
    this.#text(outcome.kind);
    // Most settlements are a plain `done`.
    if (outcome.kind !== "done" || outcome.ending !== undefined || deliveries !== undefined) this.add(settlement);
  }

  #list(list: readonly Digestible[]): void {
    this.#mix(list.length, 6);
    for (const item of list) this.add(item);
  }

  #operation(operation: PathOperation): void {
    this.#text(operation.op);
    this.#mix(operation.path.length, 6);
    // By index: iterating a frozen array is slow, and most paths are frozen.
    for (let i = 0; i < operation.path.length; i++) this.#text(operation.path[i] as string);
    if (operation.op === "set") {
      this.add(operation.value);
    } else if (operation.op === "splice") {
      this.#mix(operation.index, 2);
      this.#mix(operation.remove, 2);
      this.add(operation.insert);
    }
  }

  add(value: Digestible): void {
    switch (typeof value) {
      case "string":
        this.#text(value);
        break;
      case "number":
        if ((value | 0) === value) this.#mix(value, 2);
        else this.#text(String(value));
        break;
      case "boolean":
        this.#mix(value ? 1 : 0, 3);
        break;
      case "object":
        if (value === null) this.#mix(0, 4);
        else this.#container(value);
        break;
      default:
        this.#mix(0, 5);
    }
  }

  #container(value: object): void {
    if (Array.isArray(value)) {
      this.#list(value);
      return;
    }
    const keys = Object.keys(value);
    this.#mix(keys.length, 7);
    for (const key of keys) {
      this.#text(key);
      this.add((value as { [key: string]: Digestible })[key]);
    }
  }

  #text(text: string): void {
    this.#mix(text.length, 1);
    // The same steps as `#mix` with local variables: names are most of a small commit.
    let a = this.#a;
    let b = this.#b;
    for (let i = 0; i < text.length; i++) {
      const word = text.charCodeAt(i);
      a = Math.imul(a ^ word, 2_654_435_761);
      b = Math.imul(b ^ word, 1_597_334_677);
    }
    this.#a = a;
    this.#b = b;
  }

  #mix(word: number, kind: number): void {
    this.#a = Math.imul(this.#a ^ word, 2_654_435_761) + kind;
    this.#b = Math.imul(this.#b ^ word, 1_597_334_677) + kind;
  }

  toString(): string {
    let a = this.#a;
    let b = this.#b;
    a = Math.imul(a ^ (a >>> 16), 2_246_822_507) ^ Math.imul(b ^ (b >>> 13), 3_266_489_909);
    b = Math.imul(b ^ (b >>> 16), 2_246_822_507) ^ Math.imul(a ^ (a >>> 13), 3_266_489_909);
    // Built in one call: joining two numbers takes four strings, and other number formats cost a microsecond.
    // biome-ignore format: a word on a line.
    return String.fromCharCode(
      digit(a, 0), digit(a, 5), digit(a, 10), digit(a, 15), digit(a, 20), digit(a, 25), digit(a, 30),
      digit(b, 0), digit(b, 5), digit(b, 10), digit(b, 15), digit(b, 20), digit(b, 25), digit(b, 30),
    );
  }
}

/** Five bits of a word as one of the 32 characters from "0" on; none needs escaping in JSON. */
function digit(word: number, shift: number): number {
  return 0x30 + ((word >>> shift) & 31);
}
