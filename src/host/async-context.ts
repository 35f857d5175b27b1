/**
 * The async context: a value that follows code across `await`, promises and timers. Uses `AsyncContext` if the engine
 * has it, else `AsyncLocalStorage` of Node, Deno and Bun, without an import so that the core runs on any engine.
 * Elsewhere `followsAwait` is false and `get` returns undefined. SPEC: U38, U39, U46.
 *
 * Shared by all hosts, simulated ones too. Work queued by the host (tasks, microtasks, timers) runs without a value,
 * because it belongs to no caller.
 */

/** The value for running code: its clearance, and the attempt that it is part of (`work/attempt.ts`). */
export interface WorkContext {
  readonly clearance?: readonly string[] | undefined;
}

interface Storage {
  get(): WorkContext | undefined;
  run<T>(value: WorkContext | undefined, code: () => T): T;
}

interface LocalStorage {
  getStore(): WorkContext | undefined;
  run<T>(value: WorkContext | undefined, code: () => T): T;
}

/** Globals that not every engine has. */
interface ContextGlobals {
  readonly AsyncContext?: { readonly Variable: new () => Storage };
  readonly process?: {
    getBuiltinModule?(name: string): { readonly AsyncLocalStorage?: new () => LocalStorage } | undefined;
  };
}

const storage = findStorage(globalThis as ContextGlobals);
/** Set by the first `run` with a value; before that `get` needs no lookup. */
let isUsed = false;

function findStorage({ AsyncContext, process }: ContextGlobals): Storage | undefined {
  if (AsyncContext?.Variable !== undefined) return new AsyncContext.Variable();
  const Local = process?.getBuiltinModule?.("node:async_hooks")?.AsyncLocalStorage;
  if (Local === undefined) return undefined;
  const local = new Local();
  return { get: () => local.getStore(), run: (value, code) => local.run(value, code) };
}

export const asyncContext = {
  /** Whether a value survives an `await`. */
  followsAwait: storage !== undefined,

  get(): WorkContext | undefined {
    return isUsed ? storage?.get() : undefined;
  },

  /** Runs code and its continuations with a value. */
  run<T>(value: WorkContext, code: () => T): T {
    isUsed = true;
    return storage === undefined ? code() : storage.run(value, code);
  },

  /** Runs code and its continuations without a value. */
  clear<T>(code: () => T): T {
    return this.get() === undefined ? code() : (storage as Storage).run(undefined, code);
  },
};
