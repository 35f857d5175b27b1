/**
 * Shows the running workload on stderr: one line that is rewritten on a terminal, otherwise one line every few seconds.
 */

const LINE_EVERY_MS = 5000;

export class Progress {
  readonly #stream = process.stderr;
  readonly #started = performance.now();
  #lastLineAt = Number.NEGATIVE_INFINITY;

  step(text: string): void {
    const now = performance.now();
    const line = `bench ${((now - this.#started) / 1000).toFixed(0).padStart(3)} s · ${text}`;
    if (this.#stream.isTTY) {
      this.#stream.write(`\r\x1b[2K${line.slice(0, this.#stream.columns - 1)}`);
    } else if (now - this.#lastLineAt >= LINE_EVERY_MS) {
      this.#lastLineAt = now;
      this.#stream.write(`${line}\n`);
    }
  }

  /** Clears the line before other output. */
  clear(): void {
    if (this.#stream.isTTY) this.#stream.write("\r\x1b[2K");
  }
}
