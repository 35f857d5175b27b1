/** What `#test` is under Vitest; see `portable.ts` for Deno and Bun. */
export { describe, expect, test } from "vitest";
