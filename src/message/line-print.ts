/**
 * Prints a message as a line of JSON with its newline: the counterpart of `line.ts`. SPEC: M33.
 *
 * The output equals that of `JSON.stringify`. Most answers have only ids and a timestamp as metadata, and serializing
 * the envelope costs several times as much as the data, so for those only the data is serialized.
 */
import type { Message } from "./envelope.ts";
import type { ErrorData } from "./error-data.ts";

/** Characters that are escaped in JSON, or might be. */
const UNUSUAL = /[^ !#-[\]-~]/;

/** The end of a line with the last timestamp, which many messages share. */
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

/** Whether metadata has exactly the keys of a plain answer, in their usual order. */
function isBare(metadata: object): boolean {
  let at = 0;
  for (const key in metadata) if (key !== BARE[at++]) return false;
  return at === BARE.length;
}

const BARE = ["causation", "id", "timestamp"];
