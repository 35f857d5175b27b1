/**
 * An ordinary line is read around its data, as an answer is printed around it (`line-print.ts`): of
 *
 *     {"kind":"query","type":"Memory.Get","data":{...},"metadata":{"id":"...","timestamp":1757000000000}}
 *
 * only the data and the id are parsed. What comes before them is the same in line after line and is remembered with what it says; the
 * envelope costs `JSON.parse` twice as much as the data of a small message. SPEC: M11.
 *
 * It is the same message: a text that parses by itself, between a beginning and an end that do not depend on it, has only one meaning. Whatever
 * is not written just so, or is to be looked at more closely, is left to `line.ts`.
 */
import { ID_LENGTH_MAX, type Message } from "./envelope.ts";
import type { Json, JsonLimits } from "./json.ts";
import { scanJsonText } from "./line-scan.ts";

/** What stands before the data, and what it says. */
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
/** So many digits are a safe integer, whatever they are. */
const DIGITS_MAX = 15;
/** Members and depth of an ordinary envelope: where even these are too many, the scan of the whole line says so. */
const ENVELOPE_KEYS = 4;
const ENVELOPE_DEPTH = 2;
/** Forgotten together when there are more: no app has as many types that are asked in turns. */
const HEADS_MAX = 256;

const heads = new Map<string, Head>();
let lastHead: Head | undefined;

/** The message of the line at `start` to `end`, whose text this is; undefined where it is not ordinary, or not known to be. */
export function readOrdinary(
  bytes: Uint8Array,
  start: number,
  end: number,
  text: string,
  limits: JsonLimits,
): Message | undefined {
  // Where not all of it is ASCII, places in the text are others than in the bytes.
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
    // A part of the line would keep the whole chunk that it came with alive for as long as the id is.
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

/** Whether a word stands at a place of a text. `startsWith` says the same and takes twice as long. */
function stands(word: string, text: string, at: number): boolean {
  return at >= 0 && text.slice(at, at + word.length) === word;
}

/** Remembers how an ordinary line of this kind and type begins: one was read the other way. */
export function noteOrdinary({ kind, type }: Message): void {
  // What an answer must have besides is no part of an ordinary line.
  if (kind === "reply" || kind === "error" || (type === lastHead?.type && kind === lastHead.kind)) return;
  if (heads.size >= HEADS_MAX) heads.clear();
  const text = `{"kind":"${kind}","type":"${type}"${DATA}`;
  lastHead = { text, kind, type };
  heads.set(text, lastHead);
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE;
}

/** What may stand in a text and means itself; a control character is found by the parser. */
function isPlain(byte: number): boolean {
  return byte !== QUOTE && byte !== BACKSLASH;
}
