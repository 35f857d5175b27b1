/** Apps of lists for the history checker: one command runs reads and appends as one transaction. */
import { type AppTx, app } from "../../src/index.ts";
import type { Json } from "../../src/message/json.ts";

export const SPACES = ["first", "second"];
export const KEYS = ["x", "y", "z"];

/** Without a value: a read. */
export interface Step {
  readonly key: string;
  readonly value?: number;
}

export interface Request {
  readonly steps: readonly Step[];
  /** Throws after all steps. */
  readonly fails: boolean;
}

export const FAILED = "this run fails on purpose";

/** The lists that the steps read, in order. */
export type Answer = readonly (readonly number[])[];

/** The type of the command of an app. */
export function runOf(space: string): string {
  return space === "first" ? "First.Run" : "Second.Run";
}

function listsApp(name: string) {
  return app(name, ({ cell }) => {
    const cells = new Map(KEYS.map((key) => [key, cell<number[]>(key, [])]));
    const run = ({ steps, fails }: Request, tx: AppTx): Json => {
      const read: number[][] = [];
      for (const { key, value } of steps) {
        const list = cells.get(key);
        if (list === undefined) throw new Error(`there is no list ${key}`);
        if (value === undefined) read.push([...tx.get(list)]);
        else tx.update(list, (values) => [...values, value]);
      }
      if (fails) throw new Error(FAILED);
      return read;
    };
    return { commands: { [runOf(name)]: run } };
  });
}

export default SPACES.map(listsApp);
