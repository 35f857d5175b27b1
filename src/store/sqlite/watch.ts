/**
 * Notifies listeners of writes, including those of other processes. SPEC: S23, S96.
 *
 *   listening ──the log is written──> looking after 1, 2, 4, … ms, and from the beginning again after every write
 *       ^                                │
 *       └───────────16 ms of quiet───────┘
 *
 * The operating system reports writes to the write-ahead log; then the engine is asked whether another process wrote.
 * Mostly it was this process, and a notice per written page costs a quarter of a publish, so we listen only in quiet
 * periods. As notices can be lost or unavailable, there is also a poll: slow with notices, fast without. The poll does
 * not keep the process alive, and runs only while there are listeners.
 */
import { type FSWatcher, watch } from "node:fs";
import { guarded } from "../../host/hook.ts";
import type { Host, Timer } from "../../host/host.ts";
import type { StoreChange } from "../store.ts";
import { ALL_ROWS, UntoldWrites } from "../write-note.ts";

/** With notices of the operating system: only a safety net. */
const POLL_SLOW_MS = 1_000;
/** Without notices: half of the time within which another process must notice. */
const POLL_FAST_MS = 25;
/**
 * A notice comes when the log is written, but the write becomes visible only after its flush. So we check repeatedly
 * with doubled delays: a write is noticed at the latest after twice the time of its flush.
 */
const LOOK_AGAIN_FIRST_MS = 1;
const LOOK_AGAIN_LAST_MS = 512;
/** The last check before we listen again; the maximum delay of a notice. */
const QUIET_MS = 16;

/** Changes that listeners were not told of. */
interface Untold {
  readonly writes: UntoldWrites;
  isForeign: boolean;
  isOtherHistory: boolean;
}

export class ChangeWatch {
  readonly #host: Host;
  readonly #logPath: string;
  readonly #look: () => boolean;
  readonly #listeners = new Set<(change: StoreChange) => void>();
  /** Undefined while we do not listen. */
  #file: FSWatcher | undefined;
  /** Whether notices are available. */
  #hasNews = true;
  #poll: Timer | undefined;
  #lookAgain: Timer | undefined;
  /** Whether there was a write since the last check. */
  #isMoving = false;
  /** Changes not reported to listeners yet; undefined if there are none. */
  #untold: Untold | undefined;

  /** `look` checks for foreign writes, calls `note` if there are any, and returns whether there were. */
  constructor(host: Host, databasePath: string, look: () => boolean) {
    this.#host = host;
    this.#logPath = `${databasePath}-wal`;
    this.#look = look;
  }

  add(listener: (change: StoreChange) => void): () => void {
    // The wrapper also makes one function that listens twice two listeners.
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

  /** Records a write; listeners are notified in a microtask, after the writers have their answers. */
  note(writes: UntoldWrites): void {
    this.#noted()?.writes.addAll(writes);
  }

  /** Records a write of another process. With `isOtherHistory`, which spaces it changed is unknown. */
  noteForeign(spaces: Iterable<string>, isOtherHistory: boolean): void {
    const untold = this.#noted();
    if (untold === undefined) return;
    untold.writes.add(ALL_ROWS);
    for (const space of spaces) untold.writes.add({ ...ALL_ROWS, space });
    untold.isForeign = true;
    untold.isOtherHistory ||= isOtherHistory;
  }

  /** What is to be told; undefined without listeners. */
  #noted(): Untold | undefined {
    if (this.#listeners.size === 0) return undefined;
    this.#isMoving = true;
    if (!this.#untold) {
      this.#untold = { writes: new UntoldWrites(), isForeign: false, isOtherHistory: false };
      this.#host.microtask(() => this.#tell());
    }
    return this.#untold;
  }

  close(): void {
    this.#listeners.clear();
    this.#stop();
  }

  #tell(): void {
    const untold = this.#untold;
    if (!untold) return;
    this.#untold = undefined;
    const { writes, isForeign, isOtherHistory } = untold;
    const notice = writes.notice(isForeign);
    const change: StoreChange = isOtherHistory ? { ...notice, spaces: undefined, connection: true } : notice;
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
      // Not available, or out of watches: the fast poll takes over.
      this.#loseNews();
    }
    // Check for writes from before we listened.
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
