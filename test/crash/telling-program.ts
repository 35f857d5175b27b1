/**
 * Tells so much that its pipe is full: `telling-program.ts LINES`. Says `full` on stderr when it waits for the first
 * time. Its output does not block, as that of any program which has used `process.stdout`.
 */
import { writeSync } from "node:fs";
import { tell } from "./tell.ts";

const LINE = "x".repeat(1_000);

process.stdout.write("begins\n");
let waits = 0;
for (let line = 1; line <= Number(process.argv[2]); line++) {
  tell(`${line} ${LINE}`, () => {
    if (waits++ === 0) writeSync(2, "full\n");
  });
}
