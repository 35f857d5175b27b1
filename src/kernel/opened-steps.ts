/**
 * The parts opened by a boot, closed in the opposite order, also after a failed boot. SPEC: K23.
 */
import type { Grace } from "../host/grace.ts";
import { LAST_ANSWERS_MS } from "../limits.ts";

interface Step {
  readonly name: string;
  close(graceMs: number): Promise<void>;
}

export class OpenedSteps {
  readonly #steps: Step[] = [];

  note(name: string, close: (graceMs: number) => Promise<void>): void {
    this.#steps.push({ name, close });
  }

  /** Each part gets the rest of the grace, and at least a moment. A failure does not keep other parts open. */
  async close(grace: Grace): Promise<void> {
    const leastMs = Math.min(grace.ms, LAST_ANSWERS_MS);
    const failed: { readonly name: string; readonly error: unknown }[] = [];
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step.close(Math.max(grace.leftMs, leastMs));
      } catch (error) {
        failed.push({ name: step.name, error });
      }
    }
    if (failed.length === 0) return;
    const names = failed.map(({ name }) => name).join(", ");
    const errors = failed.map(({ error }) => error);
    throw new AggregateError(errors, `the kernel did not close cleanly: ${names}`);
  }
}
