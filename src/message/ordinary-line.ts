/**
 * Fast path for ordinary lines. Of a line like
 *
 *     {"kind":"query","type":"Memory.Get","data":{...},"metadata":{"id":"...","timestamp":1757000000000}}
 *
 * only the data and the id are parsed. The start of the line repeats and is cached with its kind and type; parsing the
 * envelope costs twice as much as the data of a small message. SPEC: M11.
 *
 * The result is the same message, because data that parses alone between a fixed start and a fixed end has one meaning.
 * Any other form, and any suspicious text, is left to `line.ts`.
 */
import { ID_LENGTH_MAX, type Message } from "./envelope.ts";
import type { Json, JsonLimits } from "./json.ts";
import { scanJsonText } from "./line-scan.ts";

/** The text before the data, with its kind and type. */
interface Head {
  readonly text: string;
  readonly kind: Message["kind"];
  readonly type: string;
}

const DATA = ',"data":';
const METADATA = ',"metadata":{"id":"';
const TIMESTAMP = '","timestamp":';
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const ZERO = 0x30;
const NINE = 0x39;
const CLOSE = 0x7d;
/** Numbers of this many digits are safe integers. */
const DIGITS_MAX = 15;
/** Keys and depth of an ordinary envelope; if they exceed the limits, the scan of the whole line reports it. */
const ENVELOPE_KEYS = 4;
const ENVELOPE_DEPTH = 2;
/** The cache is cleared above this size: no app uses as many types at once. */
const HEADS_MAX = 256;

const heads = new Map<string, Head>();
let lastHead: Head | undefined;

/**
 * The message of the line at `start` to `end` with this text; undefined if it is not ordinary or its start is not
 * cached.
 */
export function readOrdinary(
  bytes: Uint8Array,
  start: number,
  end: number,
  text: string,
  limits: JsonLimits,
): Message | undefined {
  // Positions in the text equal byte offsets only if all of it is ASCII.
  if (text.length !== end - start || bytes[end - 1] !== CLOSE || bytes[end - 2] !== CLOSE) return undefined;
  const head = headOf(text);
  if (head === undefined || limits.keysMax < ENVELOPE_KEYS || limits.depthMax < ENVELOPE_DEPTH) return undefined;

  let digitsFrom = end - 2;
  let timestamp = 0;
  for (let unit = 1; isDigit(bytes[digitsFrom - 1]); unit *= 10) timestamp += (bytes[--digitsFrom]! - ZERO) * unit;
  const digits = end - 2 - digitsFrom;
  if (digits === 0 || digits > DIGITS_MAX || (digits > 1 && bytes[digitsFrom] === ZERO)) return undefined;

  const idEnd = digitsFrom - TIMESTAMP.length;
  if (!stands(TIMESTAMP, text, idEnd - start)) return undefined;
  let idFrom = idEnd;
  while (idFrom > start && isPlain(bytes[idFrom - 1]!)) idFrom--;
  if (idFrom === idEnd || idEnd - idFrom > ID_LENGTH_MAX) return undefined;

  const dataEnd = idFrom - METADATA.length;
  if (!stands(METADATA, text, dataEnd - start)) return undefined;
  const dataFrom = start + head.text.length;
  if (scanJsonText(bytes, dataFrom, dataEnd, limits, 1) !== "clean") return undefined;
  try {
    const data: Json = JSON.parse(text.slice(dataFrom - start, dataEnd - start));
    // A slice of the line would keep its whole chunk alive for as long as the id.
    const id: string = JSON.parse(text.slice(idFrom - 1 - start, idEnd + 1 - start));
    return { kind: head.kind, type: head.type, data, metadata: { id, timestamp } };
  } catch {
    return undefined;
  }
}

function headOf(text: string): Head | undefined {
  if (lastHead !== undefined && stands(lastHead.text, text, 0)) return lastHead;
  const head = heads.get(text.slice(0, text.indexOf(DATA) + DATA.length));
  if (head !== undefined) lastHead = head;
  return head;
}

/** Whether a word is at a position of a text; twice as fast as `startsWith`. */
function stands(word: string, text: string, at: number): boolean {
  return at >= 0 && text.slice(at, at + word.length) === word;
}

/** Caches the start of ordinary lines of this kind and type after the first one was parsed normally. */
export function noteOrdinary({ kind, type }: Message): void {
  // Answers need more metadata than an ordinary line has.
  if (kind === "reply" || kind === "error" || (type === lastHead?.type && kind === lastHead.kind)) return;
  if (heads.size >= HEADS_MAX) heads.clear();
  const text = `{"kind":"${kind}","type":"${type}"${DATA}`;
  lastHead = { text, kind, type };
  heads.set(text, lastHead);
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE;
}

/** A character that needs no escape; the parser detects control characters. */
function isPlain(byte: number): boolean {
  return byte !== QUOTE && byte !== BACKSLASH;
}
