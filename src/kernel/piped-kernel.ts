/**
 * A kernel on standard input and output of its parent process. SPEC: K82.
 */
import type { Readable, Writable } from "node:stream";
import { Stdio } from "../adapters/stdio.ts";
import type { Host } from "../host/host.ts";
import type { Kernel } from "./kernel.ts";

export interface Pipes {
  readonly input: Readable;
  readonly output: Writable;
}

/**
 * Reads NDJSON from the input and answers on the output. The kernel closes when the input has ended and all answers
 * are written.
 */
export async function servePipes(host: Host, kernel: Kernel, pipes: Pipes): Promise<void> {
  await new Stdio({ host, loop: kernel.loop, ...pipes }).ended;
  // `closed()` rejects if the kernel does not close cleanly.
  await kernel.close().catch(() => undefined);
}
