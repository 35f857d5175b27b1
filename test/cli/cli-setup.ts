/** A working directory, the command in it, and a kernel with an app that has a part of every kind. */
import { join } from "node:path";
import type { Json } from "../../src/message/json.ts";
import { COMPILE_CACHE, KernelProcess, MAIN } from "../kernel/kernel-process.ts";
import { type Ended, runProgram, scratchFolder } from "../repo/program.ts";

export const INSPECTED_APP = join(import.meta.dirname, "inspected-app.ts");

export function setup() {
  const cwd = scratchFolder();
  const millrace = (...args: string[]): Promise<Ended> =>
    runProgram(process.execPath, [MAIN, ...args], { cwd, env: COMPILE_CACHE });
  /** Every line of its output as a value. */
  const json = async (...args: string[]): Promise<Json[]> => {
    const { stdout, stderr, code } = await millrace(...args, "--json");
    if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${stderr}`);
    return stdout
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  };
  const start = () => KernelProcess.start(cwd, INSPECTED_APP);
  /** Asks until a row has a status; the time limit of the test ends a wait in vain. */
  const untilStatus = async (topic: string, status: string) => {
    while ((await json("ls", "events", "--topic", topic, "--status", status)).length === 0);
  };
  return { cwd, millrace, json, start, untilStatus };
}
