/**
 * Parses a line of JSON into a message, or a refusal with its reason: 413 too long, 400 not JSON, 422 not a message.
 * SPEC: M9-M12.
 *
 *   bytes --length--> --scan: depth, keys--> --UTF-8--> --JSON.parse--> --pure?--> --envelope--> message
 *
 * The result of `JSON.parse` is the message, without a copy or normalisation (`ordinary-line.ts` parses only a part of
 * most lines, with the same result). Of duplicate keys the last counts, numbers are rounded to doubles, and `__proto__`
 * is an ordinary key. Adapters find the ends of lines.
 */

import { DEPTH_MAX, LINE_BYTES_MAX, OBJECT_KEYS_MAX } from "../limits.ts";
import type { Message } from "./envelope.ts";
import { type Checked, checkEnvelope, checkMessage, type Refused } from "./envelope.ts";
import type { ErrorData } from "./error-data.ts";
import { thrownText } from "./error-data.ts";
import type { JsonLimits } from "./json.ts";
import { scanJsonText } from "./line-scan.ts";
import { noteOrdinary, readOrdinary } from "./ordinary-line.ts";

export const LINE_LIMITS: JsonLimits = {
  bytesMax: LINE_BYTES_MAX,
  depthMax: DEPTH_MAX,
  keysMax: OBJECT_KEYS_MAX,
};

/** Longer texts are encoded into a new array. */
const SCRATCH_BYTES = 16_384;

// A byte order mark is kept, so that `JSON.parse` refuses it: different texts are never read as the same line.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();
/** Buffer for the scan of texts of ordinary length; used within one call only. */
const scratch = new Uint8Array(SCRATCH_BYTES);

/** Parses one line without its newline. A string is measured by its UTF-8 bytes. */
export function parseLine(line: Uint8Array | string, limits: JsonLimits = LINE_LIMITS): Checked {
  // UTF-8 has at least as many bytes as UTF-16 has units, so this check is safe and avoids encoding huge texts.
  if (line.length > limits.bytesMax) return tooLong(limits);
  return typeof line === "string" ? parseText(line, limits) : parseLineAt(line, 0, line.length, undefined, limits);
}

/** Parses the line at `start` to `end` within `bytes`; `text` is its text if it is already decoded. */
export function parseLineAt(
  bytes: Uint8Array,
  start: number,
  end: number,
  text: string | undefined,
  limits: JsonLimits = LINE_LIMITS,
): Checked {
  if (end - start > limits.bytesMax) return tooLong(limits);
  const ordinary = text === undefined ? undefined : readOrdinary(bytes, start, end, text, limits);
  if (ordinary !== undefined) return { kind: "accepted", message: ordinary };
  const verdict = scanJsonText(bytes, start, end, limits);
  if (typeof verdict === "object") return refused(422, verdict.problem);
  const decoded = text ?? decode(bytes.subarray(start, end));
  if (decoded === undefined) return refused(400, "malformed JSON: invalid UTF-8");
  const checked = parseScanned(decoded, verdict, limits);
  if (checked.kind === "accepted") noteOrdinary(checked.message);
  return checked;
}

/** The text of ASCII bytes, in which positions equal byte offsets; undefined for other bytes. */
export function asciiText(bytes: Uint8Array): string | undefined {
  const text = decode(bytes);
  return text?.length === bytes.length ? text : undefined;
}

function parseText(text: string, limits: JsonLimits): Checked {
  if (!text.isWellFormed()) return refused(400, "malformed JSON: lone surrogate");
  // A UTF-16 unit takes at most three bytes.
  const bytes = text.length * 3 <= scratch.length ? scratch : encoder.encode(text);
  const length = bytes === scratch ? encoder.encodeInto(text, scratch).written : bytes.length;
  if (length > limits.bytesMax) return tooLong(limits);
  const verdict = scanJsonText(bytes, 0, length, limits);
  if (typeof verdict === "object") return refused(422, verdict.problem);
  return parseScanned(text, verdict, limits);
}

function parseScanned(text: string, verdict: "clean" | "inspect", limits: JsonLimits): Checked {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    // The engine's own message helps a person but differs between engines; code must not depend on it.
    return refused(400, `malformed JSON: ${thrownText(error)}`);
  }
  return verdict === "clean" ? checkEnvelope(value) : checkMessage(value, limits);
}

/** Undefined for bytes that are not UTF-8: with `fatal` the decoder throws instead of replacing them. */
function decode(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

function tooLong(limits: JsonLimits): Refused {
  return refused(413, `line too long: the limit is ${limits.bytesMax} bytes`);
}

function refused(code: Refused["code"], message: string): Refused {
  return { kind: "refused", code, message };
}

/** Characters that are escaped in JSON, or might be. */
const UNUSUAL = /[^ !#-[\]-~]/;

/** The end of a line with the last timestamp, which many messages share. */
let endTimestamp = Number.NaN;

let end = "";

/**
 * Prints a message as a line of JSON with its newline: the counterpart of `line.ts`. SPEC: M33.
 *
 * The output equals that of `JSON.stringify`. Most answers have only ids and a timestamp as metadata, and serializing
 * the envelope costs several times as much as the data, so for those only the data is serialized.
 */
export function printLine(message: Message | Message<ErrorData>): string {
  const { kind, type, data, metadata } = message;
  const { causation, id, timestamp } = metadata;
  if (!isBare(metadata) || typeof causation !== "string" || UNUSUAL.test(causation) || UNUSUAL.test(id)) {
    return `${JSON.stringify(message)}\n`;
  }
  if (timestamp !== endTimestamp) {
    end = `","timestamp":${timestamp}}}\n`;
    endTimestamp = timestamp;
  }
  const envelope = `{"kind":"${kind}","type":"${type}","data":${JSON.stringify(data)}`;
  return `${envelope},"metadata":{"causation":"${causation}","id":"${id}${end}`;
}

/** Whether metadata has exactly the keys of a plain answer, in their usual order. */
function isBare(metadata: object): boolean {
  let at = 0;
  for (const key in metadata) if (key !== BARE[at++]) return false;
  return at === BARE.length;
}

const BARE = ["causation", "id", "timestamp"];
