/** `#test` under Vitest, as narrow as on Deno and Bun (`portable.ts`): functions that they lack do not compile. */
import * as vitest from "vitest";
import type * as portable from "./portable.ts";

export const describe: typeof portable.describe = vitest.describe;
export const test: typeof portable.test = vitest.test;
export const expect: typeof portable.expect = vitest.expect;
