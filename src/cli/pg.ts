/**
 * `millrace pg start`: a Postgres server for development, until a signal ends it. Its data stay in the data directory.
 * SPEC: K194.
 */
import { createHash } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dataDirectory, makeDataDirectory } from "../kernel/data-directory.ts";
import { startLocalServer } from "../kernel/database.ts";
import { END_SIGNALS, EXIT, type ExitCode, readNumber, UsageError, type Verb, type VerbCall } from "./verb.ts";

const PORT_MIN = 1_024;
const PORT_MAX = 65_535;
/** Not the usual port of Postgres, which a server of the machine may have. */
const PORT = 54_329;

export const pg: Verb = {
  name: "pg",
  usage: "start [--port N] [--data DIR]",
  summary: "run a Postgres server for development on this machine until it is stopped",
  example: "millrace pg start\nMILLRACE_STORE=postgres://millrace@127.0.0.1:54329/postgres millrace start app.ts",
  options: {
    port: { type: "string", value: "N", about: `listen on this port of 127.0.0.1; ${PORT} unless given` },
    data: { type: "string", value: "DIR", about: "keep the data here; in the data directory unless given" },
  },
  wordsMax: 1,
  run,
};

async function run({ words: [deed], options, environment, terminal }: VerbCall): Promise<ExitCode> {
  if (deed !== "start") throw new UsageError("usage: millrace pg start");
  const port = readNumber("port", options["port"], { min: PORT_MIN, max: PORT_MAX }) ?? PORT;
  const given = options["data"];
  const data = typeof given === "string" ? given : dataFolder(environment);
  const ending = new Promise<"signal">((resolve) => {
    for (const signal of END_SIGNALS) process.once(signal, () => resolve("signal"));
  });
  terminal.progress("starting Postgres");
  const server = await startLocalServer({ data, port });
  terminal.line(`Postgres is ready; its data are in ${data}`);
  terminal.line(`  MILLRACE_STORE=${server.url} millrace start app.ts`);
  const ended = await Promise.race([ending, server.ended.then(() => "server" as const)]);
  await server.stop();
  if (ended === "signal") {
    terminal.line("stopped");
    return EXIT.ok;
  }
  terminal.complain("Postgres ended by itself; run it again to see why, or look at its data directory");
  return EXIT.failed;
}

/**
 * Postgres refuses to run as root, so as root it runs as `nobody`, which cannot enter the data directory. The data are
 * in the temporary folder then.
 */
function dataFolder(environment: VerbCall["environment"]): string {
  const directory = dataDirectory(environment);
  makeDataDirectory(directory);
  if (process.getuid?.() !== 0) return join(directory.path, "postgres");
  const name = createHash("sha256").update(directory.path).digest("hex").slice(0, 12);
  return join(tmpdir(), `millrace-postgres-data-${name}`);
}
