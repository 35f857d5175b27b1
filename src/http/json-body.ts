/**
 * Reads the body of a request as JSON. Size, depth and keys are limited on the bytes, before they are parsed. SPEC:
 * W23.
 */
import { DEPTH_MAX, LINE_BYTES_MAX, OBJECT_KEYS_MAX } from "../limits.ts";
import { Failure, thrownText } from "../message/error-data.ts";
import { findImpurity, type Json, type JsonLimits } from "../message/json.ts";
import { scanJsonText } from "../message/line-scan.ts";
import { problemText, within } from "../message/problem.ts";

export const BODY_LIMITS: JsonLimits = { bytesMax: LINE_BYTES_MAX, depthMax: DEPTH_MAX - 1, keysMax: OBJECT_KEYS_MAX };

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The bytes of the body; a `Failure` 413 if there are too many. */
export async function readBytes(request: Request, bytesMax = BODY_LIMITS.bytesMax): Promise<Uint8Array> {
  const declared = Number(request.headers.get("content-length") ?? Number.NaN);
  if (declared > bytesMax) throw tooLarge(bytesMax);
  // A declared length is kept by the HTTP parser.
  if (declared >= 0) return new Uint8Array(await request.arrayBuffer());
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body ?? []) {
    length += chunk.length;
    if (length > bytesMax) throw tooLarge(bytesMax);
    chunks.push(chunk);
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

/** The value of a JSON text; an empty text is null. */
export function parseJson(bytes: Uint8Array): Json {
  if (bytes.length === 0) return null;
  const verdict = scanJsonText(bytes, 0, bytes.length, BODY_LIMITS);
  if (typeof verdict === "object") throw new Failure(422, problemText(within("data", verdict)));
  let value: Json;
  try {
    value = JSON.parse(decoder.decode(bytes)) as Json;
  } catch (error) {
    throw new Failure(400, `malformed JSON: ${thrownText(error)}`);
  }
  const impurity = verdict === "inspect" ? findImpurity(value, BODY_LIMITS) : undefined;
  if (impurity !== undefined) throw new Failure(422, problemText(within("data", impurity)));
  return value;
}

function tooLarge(bytesMax: number): Failure {
  return new Failure(413, `the body is larger than the limit of ${bytesMax} bytes`);
}
