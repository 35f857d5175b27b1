/**
 * A value that belongs to the code which runs now and follows it over `await`, so that code which is called by a handler
 * can find the handler's transaction without an argument.
 *
 *     slot.run(value, code)   `code`, and all that it awaits, sees `value`
 *     slot.run(undefined, …)  sees none
 *
 * Node, Deno and Bun have `AsyncLocalStorage`, which is taken without an import of a Node module; an engine with
 * `AsyncContext` is asked first. Where an engine has neither, the value covers the synchronous part of `code` alone, and
 * `followsAwait` is false. Tasks, timers and microtasks of a host start without a value. SPEC: H22, H23.
 */

export interface AsyncSlot<T extends object = object> {
  /** Whether the value is there again after an `await`. */
  readonly followsAwait: boolean;
  get(): T | undefined;
  run<R>(value: T | undefined, code: () => R): R;
}

/** `AsyncLocalStorage` of Node, as far as it is used. */
interface Storage<T> {
  getStore(): T | undefined;
  run<R>(value: T | undefined, code: () => R): R;
}

/** `AsyncContext.Variable` of the language proposal. */
interface Variable<T> {
  get(): T | undefined;
  run<R>(value: T | undefined, code: () => R): R;
}

interface EngineGlobals {
  readonly AsyncContext?: { readonly Variable: new <T>() => Variable<T> };
  readonly process?: {
    readonly getBuiltinModule?: (id: string) => { readonly AsyncLocalStorage?: new <T>() => Storage<T> } | undefined;
  };
}

/** The best slot that the engine has. */
export function asyncSlot<T extends object>(engine: EngineGlobals = globalThis as EngineGlobals): AsyncSlot<T> {
  const { AsyncContext, process } = engine;
  if (AsyncContext !== undefined) return overVariable(new AsyncContext.Variable<T>());
  const { AsyncLocalStorage } = process?.getBuiltinModule?.("node:async_hooks") ?? {};
  return AsyncLocalStorage === undefined ? new SynchronousSlot<T>() : overStorage(new AsyncLocalStorage<T>());
}

function overVariable<T extends object>(variable: Variable<T>): AsyncSlot<T> {
  return {
    followsAwait: true,
    get: () => variable.get(),
    run: (value, code) => variable.run(value, code),
  };
}

function overStorage<T extends object>(storage: Storage<T>): AsyncSlot<T> {
  return {
    followsAwait: true,
    get: () => storage.getStore(),
    run: (value, code) => storage.run(value, code),
  };
}

class SynchronousSlot<T extends object> implements AsyncSlot<T> {
  readonly followsAwait = false;
  #value: T | undefined;

  get(): T | undefined {
    return this.#value;
  }

  run<R>(value: T | undefined, code: () => R): R {
    const outer = this.#value;
    this.#value = value;
    try {
      return code();
    } finally {
      this.#value = outer;
    }
  }
}

/** One for the process: hosts of a simulation and of real time share it. */
export const processSlot: AsyncSlot = asyncSlot();

/** Calls `schedule`, which queues a callback, so that the callback starts without a value. */
export function withoutValue<R>(slot: AsyncSlot, schedule: () => R): R {
  // Mostly there is none, and a look costs a few nanoseconds.
  return slot.get() === undefined ? schedule() : slot.run(undefined, schedule);
}
