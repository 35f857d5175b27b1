/**
 * Who wants to know of writes, and how we learn of those that other processes made. SPEC: S23, S96.
 *
 *   listening ──the log is written──> looking after 1, 2, 4, … ms, and from the beginning again after every write
 *       ^                                │
 *       └───────────16 ms of quiet───────┘
 *
 * The operating system tells when the write-ahead log is written; we then ask the engine whether it was somebody else. Mostly it was we
 * ourselves, and being told of every page that we write takes as long as a quarter of a publish: so we listen only while there is
 * little to hear. News can be lost or not be had at all, so there is a poll behind them: slow where news come, fast where they do
 * not. Nothing of it keeps the process alive, and none of it runs while nobody wants to know.
 */
import { type FSWatcher, watch } from "node:fs";
import { guarded } from "../../host/hook.ts";
import type { Host, Timer } from "../../host/host.ts";
import type { StoreChange } from "../store.ts";

/** With news from the operating system: only a safety net. */
const POLL_SLOW_MS = 1_000;
/** Without: half of the time within which a second process must notice. */
const POLL_FAST_MS = 25;
/**
 * The news come when the log is written, but what was written can be seen only after it was flushed. So we look again and
 * again, each time after twice as long: a write is noticed at the latest after as long again as its flush took.
 */
const LOOK_AGAIN_FIRST_MS = 1;
const LOOK_AGAIN_LAST_MS = 512;
/** The last look before we listen again; a write is noticed so much later at most. */
const QUIET_MS = 16;

export class ChangeWatch {
  readonly #host: Host;
  readonly #logPath: string;
  readonly #look: () => boolean;
  readonly #listeners = new Set<(change: StoreChange) => void>();
  /** Undefined while we do not listen. */
  #file: FSWatcher | undefined;
  /** Whether news can be had at all. */
  #hasNews = true;
  #poll: Timer | undefined;
  #lookAgain: Timer | undefined;
  /** Whether something was written since the last look. */
  #isMoving = false;
  /** What listeners have not been told; undefined when there is nothing. */
  #untold: { spaces: Set<string>; journal: boolean } | undefined;

  /** `look` asks whether somebody else wrote, calls `note` if so, and says so. */
  constructor(host: Host, databasePath: string, look: () => boolean) {
    this.#host = host;
    this.#logPath = `${databasePath}-wal`;
    this.#look = look;
  }

  add(listener: (change: StoreChange) => void): () => void {
    // Also so that one function that listens twice is two listeners.
    const own = guarded(this.#host, listener);
    this.#listeners.add(own);
    if (this.#listeners.size === 1) this.#start();
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size === 0) this.#stop();
    };
  }

  get isListenedTo(): boolean {
    return this.#listeners.size > 0;
  }

  /** Something was written; listeners are told in a microtask, after the writers have their answers. */
  note(spaces: Iterable<string>, journal: boolean): void {
    if (this.#listeners.size === 0) return;
    this.#isMoving = true;
    if (!this.#untold) {
      this.#untold = { spaces: new Set(), journal: false };
      this.#host.microtask(() => this.#tell());
    }
    for (const space of spaces) this.#untold.spaces.add(space);
    this.#untold.journal ||= journal;
  }

  close(): void {
    this.#listeners.clear();
    this.#stop();
  }

  #tell(): void {
    const untold = this.#untold;
    if (!untold) return;
    this.#untold = undefined;
    const change = { spaces: [...untold.spaces], journal: untold.journal };
    for (const listener of [...this.#listeners]) if (this.#listeners.has(listener)) listener(change);
  }

  #start(): void {
    this.#armPoll();
    this.#listen();
  }

  #stop(): void {
    this.#closeFile();
    this.#poll?.cancel();
    this.#poll = undefined;
    this.#lookAgain?.cancel();
    this.#lookAgain = undefined;
  }

  #listen(): void {
    try {
      this.#file = watch(this.#logPath, { persistent: false }, () => this.#hearNews());
      this.#file.on("error", () => this.#loseNews());
    } catch {
      // No such facility, or no more of it: the fast poll takes over.
      this.#loseNews();
    }
    // Whatever was written before we listened.
    this.#lookAgainIn(LOOK_AGAIN_FIRST_MS);
  }

  #hearNews(): void {
    this.#closeFile();
    this.#look();
    this.#lookAgainIn(LOOK_AGAIN_FIRST_MS);
  }

  #loseNews(): void {
    this.#closeFile();
    this.#hasNews = false;
    this.#poll?.cancel();
    if (this.#listeners.size > 0) this.#armPoll();
  }

  #closeFile(): void {
    this.#file?.close();
    this.#file = undefined;
  }

  #armPoll(): void {
    const delayMs = this.#hasNews ? POLL_SLOW_MS : POLL_FAST_MS;
    this.#poll = this.#host.timer(
      delayMs,
      () => {
        this.#look();
        if (this.#listeners.size > 0) this.#armPoll();
      },
      { keepAlive: false },
    );
  }

  #lookAgainIn(delayMs: number): void {
    this.#lookAgain?.cancel();
    this.#isMoving = false;
    this.#lookAgain = this.#host.timer(delayMs, () => this.#lookAfter(delayMs), { keepAlive: false });
  }

  #lookAfter(delayMs: number): void {
    this.#lookAgain = undefined;
    const isMoving = this.#look() || this.#isMoving;
    if (this.#file === undefined && this.#hasNews) {
      if (isMoving) this.#lookAgainIn(LOOK_AGAIN_FIRST_MS);
      else if (delayMs < QUIET_MS) this.#lookAgainIn(delayMs * 2);
      else this.#listen();
    } else if (!isMoving && delayMs < LOOK_AGAIN_LAST_MS) this.#lookAgainIn(delayMs * 2);
  }
}
