/**
 * Directories for the runs: one for each run, removed after it, and shared ones for the whole benchmark. All are in the
 * system's temporary directory, which must be on a real disk for real flushes (`TMPDIR` moves it).
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Scale, Scene } from "./benchmark.ts";

export class Scratch {
  readonly #root = mkdtempSync(join(tmpdir(), "millrace-bench-"));
  readonly #shared = new Map<string, Promise<string>>();
  #runs = 0;
  readonly #onExit = () => this.remove();

  constructor() {
    // An interrupted run must not leave gigabytes behind.
    process.once("exit", this.#onExit);
  }

  /** Runs with a directory of its own, which is removed afterwards. */
  async scene<Result>(scale: Scale, run: (scene: Scene) => Promise<Result>): Promise<Result> {
    const directory = this.#make(`run-${++this.#runs}`);
    try {
      return await run({ scale, directory, shared: (name, build) => this.#sharedDirectory(name, build) });
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  }

  remove(): void {
    process.off("exit", this.#onExit);
    rmSync(this.#root, { recursive: true, force: true });
  }

  #sharedDirectory(name: string, build: (directory: string) => Promise<void>): Promise<string> {
    const there = this.#shared.get(name);
    if (there) return there;
    const directory = this.#make(`shared-${name}`);
    const made = build(directory).then(() => directory);
    this.#shared.set(name, made);
    return made;
  }

  #make(name: string): string {
    const directory = join(this.#root, name);
    mkdirSync(directory);
    return directory;
  }
}
