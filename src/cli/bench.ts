/**
 * `millrace bench`: a short measurement of this machine and disk: events published and handled per second, on its own
 * store beside the data directory, with a kernel's durability. `npm run bench` of the repository compares with other
 * systems.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { systemHost } from "../host/system-host.ts";
import { dataDirectory } from "../kernel/data-directory.ts";
import { makeFolder } from "../kernel/folder.ts";
import { type Measured, measureKernel } from "../kernel/measurement.ts";
import { DURABILITY, openStore } from "../kernel/open-store.ts";
import { EXIT, type ExitCode, JSON_OPTION, readNumber, type Verb, type VerbCall } from "./verb.ts";

const SECONDS_DEFAULT = 2;

export const bench: Verb = {
  name: "bench",
  usage: "[--seconds N] [--json]",
  summary: "measure this disk for a few seconds: events published, events handled, commands answered per second",
  example: "millrace bench --seconds 5",
  options: {
    seconds: { type: "string", value: "N", about: `how long; ${SECONDS_DEFAULT} unless given` },
    json: JSON_OPTION,
  },
  wordsMax: 0,
  run,
};

async function run({ options, environment, terminal }: VerbCall): Promise<ExitCode> {
  const seconds = readNumber("seconds", options["seconds"], { min: 1, max: 600 }) ?? SECONDS_DEFAULT;
  const host = systemHost();
  // On the disk of the data directory, but outside of it.
  const beside = dirname(resolve(dataDirectory(environment).path));
  makeFolder(beside, { mode: 0o777, advice: "name a data directory elsewhere in MILLRACE_DIR" });
  const folder = mkdtempSync(join(beside, ".millrace-bench-"));
  try {
    const store = await openStore(host, join(folder, "kernel.db"));
    const measured = await measureKernel({ host, store, seconds, progress: terminal.progress });
    if (options["json"]) terminal.line(JSON.stringify({ seconds, durability: DURABILITY, ...measured }));
    else for (const line of linesOf(measured)) terminal.line(line);
    return EXIT.ok;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function linesOf({ published, handled, commands, oneCommandMs }: Measured): string[] {
  const rate = (perSecond: number) => Math.round(perSecond).toLocaleString("en").padStart(9);
  return [
    `events published     ${rate(published)} /s   64 at a time, each durable (${DURABILITY}) before it counts`,
    `events handled       ${rate(handled)} /s   each delivered to one subscriber and settled`,
    `commands answered    ${rate(commands)} /s   64 at a time: transaction, receipt, journal row, answer`,
    `one command alone    ${oneCommandMs.toFixed(2).padStart(9)} ms`,
  ];
}
