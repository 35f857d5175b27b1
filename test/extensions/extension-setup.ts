/**
 * The start of every test of extensions: real folders in a folder for temporary files, real modules in them, and whole
 * kernels. Modules tell their events by `globalThis.told`, which each test reads by the name of its own folder.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import type { DefinedExtension } from "../../src/extensions/define-extension.ts";
import type { ExtensionInCode } from "../../src/extensions/discovery.ts";
import type { Extension } from "../../src/extensions/extension.ts";
import type { ExtensionContext } from "../../src/extensions/extension-context.ts";
import type { ExtensionStatus } from "../../src/extensions/extension-record.ts";
import type { LogEntry } from "../../src/extensions/logger.ts";
import { type SimulatedHost, simulatedHost } from "../../src/host/simulated-host.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import type { KernelOptions } from "../../src/kernel/kernel-options.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { scratchFolder } from "../repo/program.ts";

const told = new Map<string, string[]>();
Reflect.set(globalThis, "told", told);

/** A folder of extensions, and the notes of their modules. */
export class ExtensionFolder {
  readonly path = scratchFolder();

  get told(): string[] {
    const name = basename(this.path);
    const lines = told.get(name) ?? [];
    told.set(name, lines);
    return lines;
  }

  /** Writes `<id>/manifest.yaml` and files beside it. `main.ts` may call `tell(text)`. */
  add(id: string, manifest: string, files: Readonly<Record<string, string>> = {}): void {
    const tell = `const tell = (text) => globalThis.told.get(${JSON.stringify(basename(this.path))}).push(text);\n`;
    void this.told;
    this.write(join(id, "manifest.yaml"), manifest);
    for (const [name, text] of Object.entries(files)) this.write(join(id, name), tell + text);
  }

  /** An extension that tells of every step of its life, and fails where it is told to. */
  addLiving(id: string, { dependsOn = [], fails, more = "" }: Living = {}): void {
    const steps = ["initialize", "start", "stop", "destroy"].map((step) => {
      const fault = step === fails ? `throw new Error("${id} cannot ${step}");` : "";
      return `${step}() { tell("${id} ${step}"); ${fault} }`;
    });
    const manifest = `id: ${id}\nentrypoint: main.js\ndepends_on: [${dependsOn.join(", ")}]\n`;
    this.add(id, manifest, { "main.js": `export default { ${[...steps, more].filter(Boolean).join(",\n")} };\n` });
  }

  write(name: string, text: string): void {
    mkdirSync(dirname(join(this.path, name)), { recursive: true });
    writeFileSync(join(this.path, name), text);
  }
}

interface Living {
  readonly dependsOn?: readonly string[];
  readonly fails?: "initialize" | "start" | "stop" | "destroy";
  readonly more?: string;
}

export interface Opened {
  readonly kernel: Kernel;
  readonly log: LogEntry[];
  status(id: string): ExtensionStatus;
  states(): Record<string, string>;
}

/** A kernel in real time, on memory; it closes with the test. */
export async function open(options: Partial<KernelOptions>): Promise<Opened> {
  const host = systemHost();
  const log: LogEntry[] = [];
  const kernel = await Kernel.open({
    ...{ host, store: memoryStore({ host }), extensionData: join(scratchFolder(), "data") },
    log: (entry) => void log.push(entry),
    ...options,
  });
  onTestFinished(() => kernel.close({ graceMs: 0 }));
  return opened(kernel, log);
}

function opened(kernel: Kernel, log: LogEntry[]): Opened {
  const find = (id: string) => {
    const status = kernel.health().extensions.find((one) => one.id === id);
    if (!status) throw new Error(`there is no extension ${id}`);
    return status;
  };
  return {
    ...{ kernel, log, status: find },
    states: () => Object.fromEntries(kernel.health().extensions.map(({ id, state }) => [id, state])),
  };
}

/** Simulated time on a disk that outlives kernels. */
export class SimulatedWorld {
  readonly host: SimulatedHost = simulatedHost(1);
  readonly disk = new MemoryDisk();
  readonly log: LogEntry[] = [];
  readonly #options: Partial<KernelOptions>;

  constructor(options: Partial<KernelOptions> = {}) {
    this.#options = options;
  }

  async open(...extensions: (ExtensionInCode | DefinedExtension)[]): Promise<Opened> {
    const { host, disk, log } = this;
    const store = memoryStore({ host, disk });
    const options = {
      host,
      store,
      extensions,
      // A world is one process after the other, unless a test says otherwise.
      alone: true,
      extensionData: "nowhere",
      log: (entry: LogEntry) => void log.push(entry),
    };
    const kernel = await host.run(() => Kernel.open({ ...options, ...this.#options }));
    await host.advance(0);
    return opened(kernel, log);
  }

  /** Runs an action and all work that follows from it without passing of time. */
  async act<T>(action: () => Promise<T>): Promise<T> {
    const result = await this.host.run(action);
    await this.host.advance(0);
    return result;
  }
}

/** An extension of the given parts, which keeps its context. */
export function inCode<T extends object>(
  manifest: Readonly<Record<string, unknown>> & { readonly id: string },
  parts: T = {} as T,
): ExtensionInCode & { readonly context: ExtensionContext } {
  let own: ExtensionContext | undefined;
  const given = parts as Extension;
  const initialize = given.initialize?.bind(given);
  given.initialize = (context) => {
    own = context;
    return initialize?.(context);
  };
  return {
    manifest,
    extension: given,
    get context() {
      if (!own) throw new Error("it was not initialized");
      return own;
    },
  };
}

/** A channel that keeps its messages. */
export function channel(id: string): ExtensionInCode & { readonly context: ExtensionContext; readonly said: string[] } {
  const said: string[] = [];
  const made = inCode({ id }, { sendMessage: (text: string) => void said.push(text) });
  return Object.assign(made, { said });
}
