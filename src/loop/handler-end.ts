/** How a handler ended, as a value: it may have thrown because of what was not here yet, or was taken back. */
import type { Json } from "../message/json.ts";
import { isThenable } from "../work/handler-call.ts";

export type End =
  | { readonly threw: false; readonly value: Json | undefined }
  | { readonly threw: true; readonly error: unknown };

/** Without a promise where the handler needs none. */
export function endOf(run: () => Json | undefined | Promise<Json | undefined>): End | Promise<End> {
  try {
    const value = run();
    return isThenable(value) ? Promise.resolve(value).then(returned, threw) : returned(value);
  } catch (error) {
    return threw(error);
  }
}

function returned(value: Json | undefined): End {
  return { threw: false, value };
}

function threw(error: unknown): End {
  return { threw: true, error };
}

/** What it came to, for whoever asked. */
export function outcomeOf(end: End): Json | undefined {
  if (end.threw) throw end.error;
  return end.value;
}
