/**
 * A message becomes a line of JSON, its newline included: the counterpart of `line.ts`. SPEC: M33.
 *
 * What `JSON.stringify` makes of the whole message, in the same order; but most answers have nothing but ids and a timestamp for
 * metadata, and an envelope around data costs the printer several times as much as the data: of those only the data is printed by it.
 */
import type { Message } from "./envelope.ts";
import type { ErrorData } from "./error-data.ts";

/** What must be written otherwise within quotes, and what need not but might. */
const UNUSUAL = /[^ !#-[\]-~]/;

/** The end of lines of the last timestamp: many messages share one. */
let endTimestamp = Number.NaN;
let end = "";

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

/** Whether metadata is what an answer has at least, in the order of its maker, and no more. */
function isBare(metadata: object): boolean {
  let at = 0;
  for (const key in metadata) if (key !== BARE[at++]) return false;
  return at === BARE.length;
}

const BARE = ["causation", "id", "timestamp"];
