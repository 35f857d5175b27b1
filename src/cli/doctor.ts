/**
 * `millrace doctor`: checks what a kernel stands on, from the runtime to the store file, and does a little real work on a store of its
 * own in the folder for temporary files. Changes nothing else.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemHost } from "../host/system-host.ts";
import { dataDirectory, exposure } from "../kernel/data-directory.ts";
import { openStore, openStoreForReading } from "../kernel/open-store.ts";
import { selfCheck } from "../kernel/self-check.ts";
import { SQLITE_VERSION_MIN } from "../limits.ts";
import { EXIT, type ExitCode, type Verb, type VerbCall } from "./verb.ts";

export const doctor: Verb = {
  name: "doctor",
  usage: "[--json]",
  summary: "check the runtime, the data directory and the store file, and do a little real work",
  example: "millrace doctor",
  options: { json: { type: "boolean" } },
  wordsMax: 0,
  run,
};

interface Finding {
  readonly check: string;
  readonly ok: boolean;
  readonly found: string;
}

async function run({ options, environment, terminal }: VerbCall): Promise<ExitCode> {
  const findings = [
    checkRuntime(),
    checkEngine(),
    checkDirectory(environment),
    await checkStore(environment),
    await checkWork(),
  ];
  const ok = findings.every((finding) => finding.ok);
  if (options["json"]) {
    terminal.line(JSON.stringify({ ok, findings }));
  } else {
    for (const finding of findings) {
      const mark = finding.ok ? terminal.good("ok    ") : terminal.bad("wrong ");
      terminal.line(`${mark}${finding.check.padEnd(12)}${finding.found}`);
    }
  }
  return ok ? EXIT.ok : EXIT.failed;
}

/** A runtime that is too old never gets here: the shim in `bin/` sees to that. */
function checkRuntime(): Finding {
  return { check: "runtime", ok: true, found: `Node ${process.versions.node}` };
}

function checkEngine(): Finding {
  const version = process.versions["sqlite"] ?? "0";
  const ok = version.localeCompare(SQLITE_VERSION_MIN, "en", { numeric: true }) >= 0;
  const found = ok ? version : `${version} can lose committed data; take a Node with ${SQLITE_VERSION_MIN} or later`;
  return { check: "SQLite", ok, found };
}

function checkDirectory(environment: VerbCall["environment"]): Finding {
  const directory = dataDirectory(environment);
  const exposed = exposure(directory);
  if (exposed) return { check: "directory", ok: false, found: exposed };
  const found = existsSync(directory.path)
    ? `${directory.path}, its owner's alone`
    : `${directory.path} is not there yet; "millrace start" makes it`;
  return { check: "directory", ok: true, found };
}

async function checkStore(environment: VerbCall["environment"]): Promise<Finding> {
  const { databaseFile } = dataDirectory(environment);
  const check = "store";
  if (!existsSync(databaseFile)) return { check, ok: true, found: `${databaseFile} is not there yet` };
  try {
    await using store = await openStoreForReading(systemHost(), databaseFile);
    const { ok, rows, documents, problems } = await store.verify();
    const found = ok ? `${rows} journal rows and ${documents} documents, all as written` : problems.join("; ");
    return { check, ok, found: `${databaseFile}: ${found}` };
  } catch (error) {
    // A store that does not open is a finding like any other.
    return { check, ok: false, found: error instanceof Error ? error.message : String(error) };
  }
}

/** Events are published, and each is handled in one commit with its receipt, on a file that goes away again. */
async function checkWork(): Promise<Finding> {
  const check = "self-check";
  const folder = mkdtempSync(join(tmpdir(), "millrace-doctor-"));
  try {
    const host = systemHost();
    const began = host.monotonic();
    await using store = await openStore(host, join(folder, "kernel.db"));
    const { published, handled, waiting } = await selfCheck(store, host);
    const ok = published === handled + waiting;
    const took = Math.round(host.monotonic() - began);
    return {
      check,
      ok,
      found: `${published} events published, ${handled} handled, in ${took} ms on a file of its own`,
    };
  } catch (error) {
    return { check, ok: false, found: error instanceof Error ? error.message : String(error) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
