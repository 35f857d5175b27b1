/**
 * Commands that a worker thread handles. The thread's file exports `commands({...})`; the app names the file by
 * `worker(url)`, and takes the types from it by `import type`, so that its code is loaded in the thread alone. SPEC:
 * A36-A39.
 *
 *     export default commands({ "Image.Resize": (data: { file: string }) => … });                  // resize.ts
 *     const images = worker<typeof resize>(new URL("./resize.ts", import.meta.url));               // app.ts
 *     return { commands: { "Image.Resize": images } };
 */
import { serve, type WorkerPort } from "../loop/worker-serve.ts";
import { isMessageType } from "../message/envelope.ts";
import type { Json } from "../message/json.ts";
import { show } from "../message/problem.ts";
import type { Duration } from "./duration.ts";

/** The `workerData` of a thread that is to serve the commands of its file. */
export const COMMANDS_THREAD = "millrace:commands";

/** The facts of one call in a worker thread. */
export interface WorkerContext {
  /** Aborted when the caller has been answered with a timeout. */
  readonly signal: AbortSignal;
}

/** The handler of a command in a worker thread. */
export type WorkerFunction = (data: never, context: WorkerContext) => unknown;

/** The default export of a worker's file. */
export class WorkerCommands<out Commands = unknown> {
  readonly commands: Commands;

  constructor(commands: Commands) {
    this.commands = commands;
  }
}

/** In a worker's file: its commands by name. In the thread of a kernel it serves them; elsewhere it does nothing. */
export function commands<const Commands extends Readonly<Record<string, WorkerFunction>>>(
  all: Commands,
): WorkerCommands<Commands> {
  for (const [name, handler] of Object.entries(all)) {
    if (!isMessageType(name))
      throw new TypeError(`commands: a name is two PascalCase words, like Image.Resize; got ${show(name)}`);
    if (typeof handler !== "function")
      throw new TypeError(`commands: ${name} must be a function (data, { signal }) => …, got ${show(handler)}`);
  }
  const port = threadPort();
  if (port !== undefined) {
    const entries = Object.entries(all).map(([name, handler]) => {
      const handle = async (data: Json, { signal }: WorkerContext) =>
        (await handler(data as never, { signal })) as Json;
      return [name, { handle }] as const;
    });
    serve({ commands: Object.fromEntries(entries) }, port);
  }
  return new WorkerCommands(all);
}

interface Threads {
  readonly workerData: unknown;
  readonly parentPort: {
    postMessage(message: unknown): void;
    on(event: "message", listener: (data: unknown) => void): void;
  } | null;
}

/**
 * The port of a thread that a kernel has started for commands. The module is looked up, because this file runs without
 * Node too.
 */
function threadPort(): WorkerPort | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?: (name: string) => unknown } };
  const threads = process?.getBuiltinModule?.("node:worker_threads") as Threads | undefined;
  if (threads?.workerData !== COMMANDS_THREAD) return undefined;
  const { parentPort } = threads;
  if (parentPort === null) return undefined;
  return {
    postMessage: (message) => parentPort.postMessage(message),
    onMessage: (listener) => parentPort.on("message", listener),
  };
}

/** Options of `worker`. */
export interface WorkerOptions {
  /** A command that takes longer is answered with 504: 5 minutes unless given; 0: no limit. */
  readonly timeout?: Duration;
  /** True: a command that a crash interrupted runs again. Otherwise it is answered as interrupted. */
  readonly idempotent?: boolean;
}

/** Commands that a worker thread handles. Made by `worker`. */
export class WorkerDefinition<out Commands = unknown> {
  readonly url: URL;
  readonly options: WorkerOptions;
  declare readonly "~commands"?: Commands;

  constructor(url: URL, options: WorkerOptions) {
    this.url = url;
    this.options = options;
  }

  /** The name of its file: `resize` of `resize.ts`. */
  get stem(): string {
    return (this.url.pathname.split("/").at(-1) ?? "").replace(/\..*$/, "");
  }
}

/**
 * Names the file of a worker thread. Each command that it handles is an entry of `commands` with this value; all share
 * the thread.
 */
export function worker<Worker extends WorkerCommands>(
  url: URL,
  options: WorkerOptions = {},
): WorkerDefinition<Worker["commands"]> {
  if (!(url instanceof URL))
    throw new TypeError(`worker: takes new URL("./resize.ts", import.meta.url), got ${show(url)}`);
  return new WorkerDefinition(url, options);
}
