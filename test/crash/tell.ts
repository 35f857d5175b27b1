/**
 * A line on the standard output of a program that may be killed at any moment. It is written at once: a line that was
 * told before the kill is in the pipe. A full pipe that does not block answers EAGAIN; then the program waits until its
 * reader has made room.
 */
import { writeSync } from "node:fs";

/** Between two tries. The reader is another process, so that this one can sleep. */
const RETRY_MS = 1;

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** `onFull` is called before each wait. */
export function tell(line: string, onFull: () => void = () => undefined): void {
  let left = Buffer.from(`${line}\n`);
  while (left.length > 0) {
    try {
      left = left.subarray(writeSync(1, left));
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) throw error;
      onFull();
      Atomics.wait(sleeper, 0, 0, RETRY_MS);
    }
  }
}
