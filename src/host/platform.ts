/**
 * The runtime's clock, timers and random source, captured when this module loads; no other file of `src/` names them.
 * Capturing is needed because a simulation replaces the globals by functions that throw, while the system host and the
 * simulation's driver must go on working. SPEC: H7, H11.
 *
 * Only Web APIs are used; `setImmediate` and `ref`/`unref` of timers are used if the runtime has them.
 */

export interface Platform {
  wallMs(): number;
  monotonicMs(): number;
  /** At most `TIMER_CHUNK_MS`. It may fire a little early by the monotonic clock. */
  startTimeout(delayMs: number, wake: () => void): Timeout;
  macrotask(run: () => void): void;
  microtask(run: () => void): void;
  fillRandom(words: Uint32Array<ArrayBuffer>): void;
  /** Prints an error that no caller receives. */
  complain(what: string, error: unknown): void;
}

/** A pending `setTimeout`. */
export interface Timeout {
  stop(): void;
  /**
   * Whether it keeps the process alive; initially true. No effect in runtimes whose processes do not end by themselves.
   */
  keepAlive(on: boolean): void;
}

/** Globals of which not every runtime has all. */
interface TaskQueueGlobals {
  queueMicrotask(run: () => void): void;
  setImmediate?: (run: () => void) => unknown;
}

const taskQueueGlobals: TaskQueueGlobals = globalThis;
const { queueMicrotask: realQueueMicrotask, setImmediate: realSetImmediate } = taskQueueGlobals;
const { setTimeout: realSetTimeout, clearTimeout: realClearTimeout } = globalThis;
const realNow = Date.now;
const realPerformance = globalThis.performance;
const realMonotonic = realPerformance.now;
const realCrypto = globalThis.crypto;
const realFill = realCrypto.getRandomValues;

const platform: Platform = {
  wallMs: () => realNow(),
  monotonicMs: () => realMonotonic.call(realPerformance),
  startTimeout,
  macrotask: captureMacrotask(),
  microtask: (run) => realQueueMicrotask(run),
  fillRandom: (words) => void realFill.call(realCrypto, words),
  // Not captured, so that a replaced console receives the output.
  complain: (what, error) => globalThis.console.error(`millrace: ${what}:`, error),
};

export function webPlatform(): Platform {
  return platform;
}

function startTimeout(delayMs: number, wake: () => void): Timeout {
  const token = realSetTimeout(wake, delayMs);
  return {
    stop: () => realClearTimeout(token),
    keepAlive: (on) => setKeepAlive(token, on),
  };
}

/** Node, Deno and Bun return an object that can be unreferenced, browsers a number. */
function setKeepAlive(token: unknown, on: boolean): void {
  if (typeof token !== "object" || token === null) return;
  if (on && "ref" in token && typeof token.ref === "function") token.ref();
  if (!on && "unref" in token && typeof token.unref === "function") token.unref();
}

/**
 * `setImmediate` if it exists: it keeps the process alive only while a task is queued. A `MessageChannel` with a
 * listener keeps a Node process alive for good, so it is used only in browsers.
 */
function captureMacrotask(): (run: () => void) => void {
  if (realSetImmediate === undefined) return messageChannelMacrotask(new MessageChannel());
  return (run) => void realSetImmediate(run);
}

/** One message for each task, so that every task is its own turn and an error ends only its own task. */
export function messageChannelMacrotask(channel: MessageChannel): (run: () => void) => void {
  const queue: Array<() => void> = [];
  let head = 0;
  channel.port1.onmessage = () => {
    const run = queue[head++]!;
    // The array is reset when it is empty, and compacted when it has a long consumed part.
    if (head === queue.length || head === 1_024) {
      queue.splice(0, head);
      head = 0;
    }
    run();
  };
  return (run) => {
    queue.push(run);
    channel.port2.postMessage(null);
  };
}
