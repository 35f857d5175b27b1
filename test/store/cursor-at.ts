/** The cursor after a journal id, for a store with one journal lane. */
import { cursorOf } from "../../src/store/journal-position.ts";
import type { Store } from "../../src/store/store.ts";

export function cursorAt({ connection: { history } }: Store, id: number): string {
  return cursorOf({ history, lanes: new Map([[0, id]]) });
}
