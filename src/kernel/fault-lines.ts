/**
 * Faults as lines for people. A repeated line is suppressed for a second: thousands of refused clients would fill the
 * disk and take the kernel's time. SPEC: K53.
 *
 *     shown ──the same within a second──> counted ──again after that──> shown, with the number left out
 *
 * There is no timer: the last suppressed lines are reported with the next one.
 */
import type { Host } from "../host/host.ts";
import type { Observer } from "../loop/observation.ts";
import { visibleLines } from "../message/visible-text.ts";
import { faultText } from "./faults.ts";

/** The same line is shown once in this time. */
const PAUSE_MS = 1_000;
/** Limit of remembered lines; the oldest are dropped. */
const LINES_MAX = 256;

export class FaultLines {
  readonly #host: Pick<Host, "monotonic">;
  readonly #show: (text: string) => void;
  /** By text, in the order in which they were shown. */
  readonly #shown = new Map<string, { readonly atMs: number; leftOut: number }>();

  constructor(host: Pick<Host, "monotonic">, show: (text: string) => void) {
    this.#host = host;
    this.#show = show;
  }

  readonly observe: Observer = (observation) => {
    const text = faultText(observation);
    if (text !== undefined) this.say(text);
  };

  /** For errors that no observer reports, like uncaught ones. */
  say(text: string): void {
    const nowMs = this.#host.monotonic();
    const before = this.#shown.get(text);
    if (before !== undefined && nowMs - before.atMs < PAUSE_MS) {
      before.leftOut++;
      return;
    }
    this.#remember(text, nowMs);
    const leftOut = before?.leftOut ?? 0;
    this.#show(leftOut === 0 ? text : `${text} (left out since it was last shown: ${leftOut})`);
  }

  #remember(text: string, atMs: number): void {
    this.#shown.delete(text);
    this.#shown.set(text, { atMs, leftOut: 0 });
    const [first] = this.#shown.keys();
    if (this.#shown.size > LINES_MAX && first !== undefined) this.#shown.delete(first);
  }
}

export function faultsToStderr(host: Pick<Host, "monotonic">): Observer {
  return new FaultLines(host, (text) => void process.stderr.write(`millrace: ${visibleLines(text)}\n`)).observe;
}
