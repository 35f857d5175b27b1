/**
 * Converts a node's reads to and from their stored row (`NodeBasis`). A row has no values: it has one digest of all
 * that the last run read. After a restart, a node whose inputs moved is compared by the digest before it runs again.
 * SPEC: I7.
 *
 * A row groups reads by document. It keeps the order of reads within a document, and orders documents by their first
 * read.
 */

import { FINGERPRINTS_REMEMBERED_MAX } from "../limits.ts";
import { canonicalJson } from "../message/canonical-json.ts";
import { thrownText } from "../message/error-data.ts";
import { isJsonObject, type Json, type JsonObject } from "../message/json.ts";
import { hashText } from "../message/sha256.ts";
import type { BasisInput } from "../store/commit.ts";
import { asLink } from "../store/document.ts";
import type { RecordedBasis } from "../store/store.ts";
import { labelSeen } from "./address-label.ts";
import type { DocumentIndex, Edge, NodeAddress, NodeRecord, SchedulerNode } from "./node.ts";
import type { GateSettings, GateState, Observation, Persisted } from "./node-state.ts";

/** Digits of a digest: 64 bits prevent accidental collisions, 80 bits make deliberate ones expensive. */
const DIGEST_DIGITS = 20;

/** A node's reads by document. */
export type ReadsByDocument = ReadonlyMap<DocumentIndex, readonly Edge[]>;

export function readsByDocument(node: SchedulerNode): ReadsByDocument {
  const reads = new Map<DocumentIndex, Edge[]>();
  for (let edge = node.reads; edge !== null; edge = edge.next) {
    const { home } = edge.address;
    const ofDocument = reads.get(home);
    if (ofDocument === undefined) reads.set(home, [edge]);
    else ofDocument.push(edge);
  }
  return reads;
}

export function basisInput({ document }: DocumentIndex, edges: readonly Edge[], sequence: number): BasisInput {
  const reads = edges.map(({ address, shallow }) => ({
    path: address.path,
    depth: shallow ? ("shallow" as const) : ("deep" as const),
  }));
  return { scope: document.scope, id: document.id, sequence, reads };
}

// Digests -----------------------------------------------------------------------------------------------------------

/** Digests of containers that were read whole, valid until the next change: many nodes read the same containers. */
export type DigestMemo = Map<NodeAddress, string>;

/** One digest of the current values and labels of the node's reads. */
export function readsDigest(reads: ReadsByDocument, memo: DigestMemo): string {
  let text = "";
  for (const edges of reads.values()) for (const edge of edges) text += `${readText(edge, memo)}${labelText(edge)}\n`;
  return hashText(text).slice(0, DIGEST_DIGITS);
}

/** A value with another label is another input (decision 0010). */
function labelText({ address, shallow }: Edge): string {
  if (address.document.labels === undefined) return "";
  const label = labelSeen(address, shallow);
  return label.length === 0 ? "" : ` under ${JSON.stringify(label)}`;
}

function readText({ address, shallow }: Edge, memo: DigestMemo): string {
  // A path below a link has no value, but the link itself may have changed.
  for (let above = address.parent; above !== null; above = above.parent) {
    const { value } = above;
    if (asLink(value) !== undefined) return `below ${canonicalJson(value as Json)}`;
  }
  const { value } = address;
  if (typeof value !== "object" || value === null) return value === undefined ? "" : JSON.stringify(value);
  if (shallow) return shapeText(value);
  let digest = memo.get(address);
  if (digest === undefined) {
    digest = `#${hashText(canonicalJson(value))}`;
    memo.set(address, digest);
  }
  return digest;
}

/** The parts of a value that a shallow read sees. */
function shapeText(value: Json): string {
  if (Array.isArray(value)) return `[${value.length}]`;
  if (asLink(value) !== undefined) return canonicalJson(value);
  return JSON.stringify(Object.keys(value as JsonObject).sort());
}

// Settings ----------------------------------------------------------------------------------------------------------

export function nodeSettings(
  { error, gate }: SchedulerNode,
  { creates, declared }: NodeRecord,
  { digest, open }: { readonly digest: string; readonly open: boolean },
): Json {
  const changed = gate === undefined ? undefined : gateSettings(gate, declared);
  return {
    seen: digest,
    ...(changed === undefined ? {} : { gate: changed }),
    ...(error === undefined ? {} : { error: thrownText(error) }),
    ...(creates ? { creates } : {}),
    ...(open ? { open } : {}),
  };
}

/** Settings that application code changed since the registration; those of the automatic debounce are not stored. */
function gateSettings(gate: GateState, declared: Required<GateSettings>): JsonObject | undefined {
  const { throttleMs, noAutoDebounce } = gate;
  const debounceMs = gate.debouncedBy === "policy" ? declared.debounceMs : gate.debounceMs;
  const settings = {
    ...(debounceMs === declared.debounceMs ? {} : { debounceMs }),
    ...(throttleMs === declared.throttleMs ? {} : { throttleMs }),
    ...(noAutoDebounce === declared.noAutoDebounce ? {} : { noAutoDebounce }),
  };
  return Object.keys(settings).length === 0 ? undefined : settings;
}

/** Checks the format, because other code may have written the row. */
export function isObservation(row: RecordedBasis): row is RecordedBasis & Observation {
  const { settings } = row;
  if (!isJsonObject(settings)) return false;
  const { seen, gate, error, creates, open } = settings;
  if (typeof seen !== "string" || !isOr("string", error)) return false;
  return isOr("boolean", creates) && isOr("boolean", open) && (gate === undefined || isGateSettings(gate));
}

function isGateSettings(gate: Json): boolean {
  if (!isJsonObject(gate)) return false;
  const { debounceMs, throttleMs, noAutoDebounce } = gate;
  return isDuration(debounceMs) && isDuration(throttleMs) && isOr("boolean", noAutoDebounce);
}

function isOr(type: "boolean" | "string", value: Json | undefined): boolean {
  return value === undefined || typeof value === type;
}

function isDuration(ms: Json | undefined): boolean {
  return ms === undefined || (typeof ms === "number" && Number.isFinite(ms) && ms >= 0);
}

const DIGITS = 16;

/**
 * Tells versions of a node's code apart by the text of its function and a version that the application gives. The text
 * does not contain called functions and captured values; after a change of these, the application changes the version.
 */
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
