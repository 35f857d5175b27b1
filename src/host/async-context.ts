/**
 * The async context: a value that follows the code that was called with it across `await`, promises and timers. `AsyncContext` where an engine has it,
 * else `AsyncLocalStorage` of Node, Deno and Bun, taken without an import so that the core runs on any engine. Elsewhere there is none:
 * `followsAwait` is false, and `get` gives nothing. SPEC: U38, U39, U46.
 *
 * One for all hosts, simulated ones too. Work that the host queues (tasks, microtasks, timers) runs without a value: it belongs to no caller.
 */

/** The value that code runs with: what it may know, and the attempt that it is part of (`work/attempt.ts`). */
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

/** The parts of the global object that not every engine has. */
interface ContextGlobals {
  readonly AsyncContext?: { readonly Variable: new () => Storage };
  readonly process?: {
    getBuiltinModule?(name: string): { readonly AsyncLocalStorage?: new () => LocalStorage } | undefined;
  };
}

const storage = findStorage(globalThis as ContextGlobals);
/** Set by the first `run` with a value: before it there is nothing to look for. */
let isUsed = false;

function findStorage({ AsyncContext, process }: ContextGlobals): Storage | undefined {
  if (AsyncContext?.Variable !== undefined) return new AsyncContext.Variable();
  const Local = process?.getBuiltinModule?.("node:async_hooks")?.AsyncLocalStorage;
  if (Local === undefined) return undefined;
  const local = new Local();
  return { get: () => local.getStore(), run: (value, code) => local.run(value, code) };
}

export const asyncContext = {
  /** Whether a value outlasts an `await`. */
  followsAwait: storage !== undefined,

  get(): WorkContext | undefined {
    return isUsed ? storage?.get() : undefined;
  },

  /** Runs code, and all that follows from it, with a value. */
  run<T>(value: WorkContext, code: () => T): T {
    isUsed = true;
    return storage === undefined ? code() : storage.run(value, code);
  },

  /** Runs code, and all that follows from it, without one. */
  clear<T>(code: () => T): T {
    return this.get() === undefined ? code() : (storage as Storage).run(undefined, code);
  },
};
