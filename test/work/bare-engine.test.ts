/** Handlers on an engine without an async context, like a browser of today. */
import { describe, expect, test } from "vitest";
import { runProgram } from "../repo/program.ts";

describe("an engine without an async context", () => {
  test("[U46] writes before the first await, through `tx` and inside `tx.within` are part of the transaction", async () => {
    const { stdout, stderr, code } = await runProgram(process.execPath, ["test/work/bare-engine-program.ts"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(stdout)).toEqual({
      followsAwait: false,
      ends: ["failed", "done"],
      afterThrow: [null, null, null],
      after: [1, 1, 1],
    });
  });
});
