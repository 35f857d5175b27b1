/**
 * When the watch listens to the operating system, and when it looks by itself: on a file of its own, with timers that
 * the test fires.
 */
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Timer } from "../../../src/host/host.ts";
import { ChangeWatch } from "../../../src/store/sqlite/watch.ts";
import { CLAIMABLE, UntoldWrites } from "../../../src/store/write-note.ts";
import { ControlledHost } from "../controlled-host.ts";

/** The delays that are waited for now; the test ends the shortest. */
class Delays extends ControlledHost {
  readonly #waiting = new Set<{ readonly delayMs: number; readonly fire: () => void }>();

  override timer(delayMs: number, fire: () => void): Timer {
    const one = { delayMs, fire };
    this.#waiting.add(one);
    return { cancel: () => this.#waiting.delete(one) };
  }

  /** Ends the shortest wait; says how long it was. */
  pass(): number {
    const [first] = [...this.#waiting].toSorted((a, b) => a.delayMs - b.delayMs);
    if (first === undefined) throw new Error("nobody waits");
    this.#waiting.delete(first);
    first.fire();
    return first.delayMs;
  }
}

class WatchedLog implements Disposable {
  readonly host = new Delays();
  readonly #directory = mkdtempSync(join(tmpdir(), "millrace-watch-"));
  readonly #log = join(this.#directory, "app.db-wal");
  #looked: () => void = () => {};
  readonly watch: ChangeWatch;

  constructor() {
    writeFileSync(this.#log, "");
    this.watch = new ChangeWatch(this.host, join(this.#directory, "app.db"), () => {
      this.#looked();
      return false;
    });
    this.watch.add(() => {});
  }

  /** Writes to the log, and resolves when the watch has looked because of it. */
  written(): Promise<void> {
    return new Promise((resolve) => {
      this.#looked = resolve;
      appendFileSync(this.#log, "page");
    });
  }

  [Symbol.dispose](): void {
    this.watch.close();
    rmSync(this.#directory, { recursive: true });
  }
}

describe("the watch", () => {
  test("[S96] the watch checks less and less often after a notice, listens again when it is quiet, and gets the next notice", async () => {
    using log = new WatchedLog();
    for (let round = 0; round < 2; round++) {
      await log.written();
      expect(Array.from({ length: 5 }, () => log.host.pass())).toEqual([1, 2, 4, 8, 16]);
      // It has missed the writes before it listened.
      expect(Array.from({ length: 10 }, () => log.host.pass())).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512]);
    }
  });

  test("[S96] the watch checks often while the store itself writes, and does not listen to these writes", async () => {
    using log = new WatchedLog();
    await log.written();
    expect(Array.from({ length: 4 }, () => log.host.pass())).toEqual([1, 2, 4, 8]);
    const written = new UntoldWrites();
    written.add(CLAIMABLE);
    for (let batch = 0; batch < 3; batch++) {
      log.watch.note(written);
      expect([log.host.pass(), log.host.pass()]).toEqual([batch === 0 ? 16 : 2, 1]);
    }
    expect(Array.from({ length: 5 }, () => log.host.pass())).toEqual([2, 4, 8, 16, 1]);
    await log.written();
  });
});
