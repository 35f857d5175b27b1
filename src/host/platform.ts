/**
 * What a runtime gives us, captured once when this module loads: the only file of `src/` that names the runtime's clock,
 * timers and random source. Capturing matters: a simulation replaces the globals by functions that throw, and the
 * system host, and the simulation's own driver, must go on working. SPEC: H7, H11.
 *
 * Only Web APIs are used; `setImmediate` and the `ref`/`unref` of timers are taken where the runtime has them.
 */

export interface Platform {
  wallMs(): number;
  monotonicMs(): number;
  /** At most `TIMER_CHUNK_MS`. It may call a little early, by the monotonic clock. */
  startTimeout(delayMs: number, wake: () => void): Timeout;
  macrotask(run: () => void): void;
  microtask(run: () => void): void;
  fillRandom(words: Uint32Array<ArrayBuffer>): void;
  /** For people, where nobody else can be told. */
  complain(what: string, error: unknown): void;
}

/** A pending `setTimeout`. */
export interface Timeout {
  stop(): void;
  /** Whether it keeps the process alive; it does at first. No effect where processes do not end by themselves. */
  keepAlive(on: boolean): void;
}

/** The part of the global object that not every runtime has, beside one that all have. */
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
  // Not captured: whoever replaces the console wants to see what is said there.
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
 * `setImmediate` where there is one: it keeps the process alive only while something is queued. A MessageChannel with a
 * listener keeps a Node process alive for good, so it is used only where there is no `setImmediate`: in browsers.
 */
function captureMacrotask(): (run: () => void) => void {
  if (realSetImmediate === undefined) return messageChannelMacrotask(new MessageChannel());
  return (run) => void realSetImmediate(run);
}

/** One message for each task, so that every task is a turn of its own and a thrown error ends only its own task. */
export function messageChannelMacrotask(channel: MessageChannel): (run: () => void) => void {
  const queue: Array<() => void> = [];
  let head = 0;
  channel.port1.onmessage = () => {
    const run = queue[head++]!;
    // The array is given back whenever it runs empty, and shortened when a queue that never does has grown a long tail.
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
