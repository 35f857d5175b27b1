/**
 * Who wants to know of writes, and how we learn of those that other processes made. SPEC: S23, S96.
 *
 * The operating system tells when the write-ahead log is written; we then ask the engine whether it was somebody else. Such
 * news can be lost or not be had at all, so there is a poll behind it: slow where news come, fast where they do not. Nothing of
 * it keeps the process alive, and none of it runs while nobody listens.
 */
import { type FSWatcher, watch } from "node:fs";
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

export class ChangeWatch {
  readonly #host: Host;
  readonly #logPath: string;
  readonly #look: () => boolean;
  readonly #listeners = new Set<(change: StoreChange) => void>();
  #file: FSWatcher | undefined;
  #poll: Timer | undefined;
  #lookScheduled = false;
  #lookAgain: Timer | undefined;
  /** What listeners have not been told; undefined when there is nothing. */
  #untold: { spaces: Set<string>; journal: boolean } | undefined;

  /** `look` asks whether somebody else wrote, calls `note` if so, and says so. */
  constructor(host: Host, databasePath: string, look: () => boolean) {
    this.#host = host;
    this.#logPath = `${databasePath}-wal`;
    this.#look = look;
  }

  add(listener: (change: StoreChange) => void): () => void {
    // A wrapper, so that one function that listens twice is two listeners.
    const own = (change: StoreChange) => listener(change);
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
    try {
      this.#file = watch(this.#logPath, { persistent: false }, () => this.#lookSoon());
      this.#file.on("error", () => this.#loseFile());
    } catch {
      // No such facility, or no more of it: the fast poll takes over.
      this.#file = undefined;
    }
    this.#armPoll();
    // Whatever was written between opening and now.
    this.#lookSoon();
  }

  #stop(): void {
    this.#file?.close();
    this.#file = undefined;
    this.#poll?.cancel();
    this.#poll = undefined;
    this.#lookAgain?.cancel();
    this.#lookAgain = undefined;
  }

  #loseFile(): void {
    this.#file?.close();
    this.#file = undefined;
    this.#poll?.cancel();
    if (this.#listeners.size > 0) this.#armPoll();
  }

  #armPoll(): void {
    const delayMs = this.#file === undefined ? POLL_FAST_MS : POLL_SLOW_MS;
    this.#poll = this.#host.timer(
      delayMs,
      () => {
        this.#look();
        if (this.#listeners.size > 0) this.#armPoll();
      },
      { keepAlive: false },
    );
  }

  /** One write of another process is many writes to the log; one look serves them all. */
  #lookSoon(): void {
    if (this.#lookScheduled) return;
    this.#lookScheduled = true;
    this.#host.microtask(() => {
      this.#lookScheduled = false;
      if (this.#listeners.size === 0) return;
      this.#lookAgain?.cancel();
      this.#lookAgain = undefined;
      if (!this.#look()) this.#lookAgainIn(LOOK_AGAIN_FIRST_MS);
    });
  }

  #lookAgainIn(delayMs: number): void {
    const look = () => {
      this.#lookAgain = undefined;
      if (!this.#look() && delayMs < LOOK_AGAIN_LAST_MS) this.#lookAgainIn(delayMs * 2);
    };
    this.#lookAgain = this.#host.timer(delayMs, look, { keepAlive: false });
  }
}
