/**
 * The creation time encoded in an id. A repeated id carries the same time, unlike a timestamp beside it. SPEC: M34.
 *
 *     tttttttt-tttt-7...                      a UUIDv7, with any suffix: to the millisecond
 *     tttttttt-hhhhhhhhhhhhhhhhhhhhhhhh.n...  a send: to 65,536 ms, rounded down; `h` are 24 digits of a hash
 *
 * `t` are lower-case hex digits of milliseconds since 1970, so ids of both kinds sort by time. Ids of any other form
 * carry no time.
 */

import { hashText } from "./sha256.ts";

/** Digits of the hash in the id of a send: 96 bits distinguish the sends of one period. */
export const SEND_HASH_DIGITS = 24;
/** Unit of the first eight digits. */
const PERIOD_MS = 0x1_0000;

const COARSE_DIGITS = 8;
const FINE_DIGITS = 4;
/** The latest time that an id can carry. */
export const ID_TIME_MS_MAX = 16 ** (COARSE_DIGITS + FINE_DIGITS) - 1;
/** The shortest id with a time: a send with a number of one digit. */
export const TIMED_ID_LENGTH_MIN = 35;

/** Creation time of the id that begins at `at`, in milliseconds; undefined if it has none. */
export function timeInId(text: string, at = 0): number | undefined {
  if (text.charCodeAt(at + COARSE_DIGITS) !== DASH) return undefined;
  const coarse = hexAt(text, at, COARSE_DIGITS);
  if (coarse === undefined) return undefined;
  if (isSend(text, at)) return coarse * PERIOD_MS;
  if (!isUuidV7(text, at)) return undefined;
  const fine = hexAt(text, at + COARSE_DIGITS + 1, FINE_DIGITS);
  return fine === undefined ? undefined : coarse * PERIOD_MS + fine;
}

/** The number of the period of a time; ids of sends in one period share their start. */
export function periodOf(nowMs: number): number {
  return Math.floor(nowMs / PERIOD_MS);
}

/** The start of a send's id; 24 digits of a hash, a dot and a number follow. */
export function periodText(period: number): string {
  return `${digits(period, COARSE_DIGITS)}-`;
}

/** Every id created before the time sorts before this text, except sends of the same period. */
export function firstIdAt(timeMs: number): string {
  const whole = Math.max(0, Math.floor(timeMs));
  return `${digits(periodOf(whole), COARSE_DIGITS)}-${digits(whole % PERIOD_MS, FINE_DIGITS)}`;
}

/** An id with a time, in the form of a UUIDv7; its other digits are derived from the text. */
export function idFrom(timeMs: number, text: string): string {
  const hash = hashText(text);
  const tail = `7${hash.slice(0, 3)}-8${hash.slice(3, 6)}-${hash.slice(6, 18)}`;
  return `${firstIdAt(timeMs)}-${tail}`;
}

function digits(value: number, count: number): string {
  return value.toString(16).padStart(count, "0");
}

const DASH = 0x2d;
const DOT = 0x2e;
const SEVEN = 0x37;

function isSend(text: string, at: number): boolean {
  const hash = at + COARSE_DIGITS + 1;
  // A foreign id may have a dot at this place but does not consist of digits too.
  return text.charCodeAt(hash + SEND_HASH_DIGITS) === DOT && areDigits(text, hash, SEND_HASH_DIGITS);
}

function isUuidV7(text: string, at: number): boolean {
  const isDash = (place: number) => text.charCodeAt(at + place) === DASH;
  return isDash(13) && text.charCodeAt(at + 14) === SEVEN && isDash(18) && isDash(23) && text.length >= at + 36;
}

/** Undefined if a character is not a lower-case hex digit. */
function hexAt(text: string, from: number, count: number): number | undefined {
  let value = 0;
  for (let at = from; at < from + count; at++) {
    const digit = digitAt(text, at);
    if (digit < 0) return undefined;
    value = value * 16 + digit;
  }
  return value;
}

function areDigits(text: string, from: number, count: number): boolean {
  for (let at = from; at < from + count; at++) if (digitAt(text, at) < 0) return false;
  return true;
}

/** Negative if the character is not a lower-case hex digit. */
function digitAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  return code >= 0x61 && code <= 0x66 ? code - 0x57 : -1;
}
