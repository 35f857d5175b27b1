/**
 * Values as JSON text. `JSON.stringify` writes `\u` only for control characters and lone surrogates. A text without it
 * needs no walk; one with it is checked for NUL and lone surrogates. SPEC: S15.
 */
import { thrownText } from "../../message/error-data.ts";
import { findImpurity, type JsonLimits } from "../../message/json.ts";
import { problemText } from "../../message/problem.ts";
import { StoreError } from "../store.ts";

const UNLIMITED: JsonLimits = {
  bytesMax: Number.POSITIVE_INFINITY,
  depthMax: Number.POSITIVE_INFINITY,
  keysMax: Number.POSITIVE_INFINITY,
};

export function jsonText(what: string, value: unknown): string {
  const text = stringify(what, value);
  if (text.includes("\\u")) {
    const problem = findImpurity(value, UNLIMITED);
    if (problem !== undefined) throw new StoreError("STORE_MISUSE", `${what}: ${problemText(problem)}`);
  }
  return text;
}

function stringify(what: string, value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new StoreError("STORE_MISUSE", `${what} is not JSON: ${thrownText(error)}`, { cause: error });
  }
  if (text === undefined) throw new StoreError("STORE_MISUSE", `${what} is not JSON: it is ${typeof value}`);
  return text;
}
