/** Running whole programs, as a user does, in folders that go away with the test. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";

export const ROOT = dirname(dirname(import.meta.dirname));

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ProgramSetting {
  readonly cwd?: string;
  /** Added to the environment of the tests, from which the command's own variables are removed. */
  readonly env?: Readonly<Record<string, string>>;
}

export function runProgram(program: string, args: readonly string[], setting: ProgramSetting = {}): Promise<Ended> {
  const { MILLRACE_DIR, MILLRACE_FILE, MILLRACE_STORE, NO_COLOR, FORCE_COLOR, ...inherited } = process.env;
  const env = { ...inherited, ...setting.env };
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: setting.cwd ?? ROOT, env, stdio: ["ignore", "pipe", "pipe"] });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk: Buffer) => {
      stdout += chunk;
    });
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk;
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
}

/** An empty folder that is removed when the test has ended. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "millrace-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
