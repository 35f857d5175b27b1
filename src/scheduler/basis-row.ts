/**
 * The row of a node: what its last run read, as the store keeps it (`NodeBasis`), and back. No values: of what was read there is one
 * digest for the whole node, by which a node whose inputs have moved is compared before it runs again. SPEC: I7.
 *
 * A row groups reads by document, so order is kept within a document, and documents stand in the order in which they were first read.
 */

import { canonicalJson } from "../message/canonical-json.ts";
import { thrownText } from "../message/error-data.ts";
import { isJsonObject, type Json, type JsonObject } from "../message/json.ts";
import { hashText } from "../message/sha256.ts";
import type { BasisInput } from "../store/commit.ts";
import { asLink } from "../store/document.ts";
import type { RecordedBasis } from "../store/store.ts";
import type { Address, DocumentIndex } from "./address.ts";
import { labelSeen } from "./address-label.ts";
import type { GateState } from "./gates.ts";
import type { Edge, SchedulerNode } from "./node.ts";
import type { GateSettings, NodeRecord } from "./node-record.ts";

/** Hex digits of a digest: 64 bits tell values apart that nobody has made to collide, and 80 those that somebody has tried to. */
const DIGEST_DIGITS = 20;

/** A node's reads by document. */
export type ReadsByDocument = ReadonlyMap<DocumentIndex, readonly Edge[]>;

/** A row that we could have written. */
export interface Observation extends Pick<RecordedBasis, "inputs" | "output"> {
  readonly settings: Settings;
}

interface Settings {
  /** The digest of all that was read. */
  readonly seen: string;
  readonly gate?: GateSettings;
  /** What the last run threw. */
  readonly error?: string;
  readonly creates?: boolean;
  /** Some of what it read is not stored: the row alone cannot say that nothing has changed. */
  readonly open?: boolean;
}

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

// Digests ----------------------------------------------------------------------------------------------------------------

/** Digests of containers that were read as a whole, for as long as nothing changes: many nodes read the same. */
export type DigestMemo = Map<Address, string>;

/** One digest of all values that the node's reads have now, and of what they are labelled with. */
export function digestOf(reads: ReadsByDocument, memo: DigestMemo): string {
  let text = "";
  for (const edges of reads.values()) for (const edge of edges) text += `${readText(edge, memo)}${labelText(edge)}\n`;
  return hashText(text).slice(0, DIGEST_DIGITS);
}

/** A value under another label is another input (decision 0010). */
function labelText({ address, shallow }: Edge): string {
  if (address.document.labels === undefined) return "";
  const label = labelSeen(address, shallow);
  return label.length === 0 ? "" : ` under ${JSON.stringify(label)}`;
}

function readText({ address, shallow }: Edge, memo: DigestMemo): string {
  // Below a link there is nothing, and yet not what there was.
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

/** What a shallow read tells apart. */
function shapeText(value: Json): string {
  if (Array.isArray(value)) return `[${value.length}]`;
  if (asLink(value) !== undefined) return canonicalJson(value);
  return JSON.stringify(Object.keys(value as JsonObject).sort());
}

// Settings ---------------------------------------------------------------------------------------------------------------

export function settingsOf(
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

/** What somebody has set since the registration; what the policy has set is its own affair. */
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

/** The store gives back what it holds, and that may have been written by anybody. */
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
