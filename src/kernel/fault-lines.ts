/**
 * What fails, as lines for people. A line that was just shown is not shown again at once: clients who are refused by the ten thousand would
 * fill the disk that the log is on, and writing it would take the time that the kernel needs for the others. SPEC: K53.
 *
 *     shown ──the same within a second──> counted ──again after that──> shown, with how many were left out
 *
 * Deliberately without a timer: what is left out last is told when it comes again.
 */
import type { Host } from "../host/host.ts";
import type { Observer } from "../loop/observation.ts";
import { visibleLines } from "../message/visible-text.ts";
import { faultText } from "./faults.ts";

/** The same line is shown once in this time. */
const PAUSE_MS = 1_000;
/** Lines that are remembered; of more, those that were shown first are forgotten. */
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

  /** Of what nobody observes, like what nobody has caught. */
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
