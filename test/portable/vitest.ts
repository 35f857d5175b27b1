/** What `#test` is under Vitest, as narrow as it is on Deno and Bun (`portable.ts`): what they lack does not compile. */
import * as vitest from "vitest";
import type * as portable from "./portable.ts";

export const describe: typeof portable.describe = vitest.describe;
export const test: typeof portable.test = vitest.test;
export const expect: typeof portable.expect = vitest.expect;
