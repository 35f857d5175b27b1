/**
 * Notices of changes by other kernels. SPEC: S23. NOTIFY is a hint and may be lost; the counters of the writers are
 * the truth, and are read once a second (every 50 ms in poll mode).
 *
 * The hint is sent on this connection after the batch was answered: a commit that contains a NOTIFY holds a lock of
 * the whole database while it is flushed, which costs three quarters of the throughput.
 */
import { guarded } from "../../host/hook.ts";
import type { Host, Timer } from "../../host/host.ts";
import type { StoreChange } from "../store.ts";
import { databaseError } from "./database-error.ts";
import { DatabaseLink } from "./link.ts";
import type { ResolvedOptions } from "./options.ts";

const LISTEN_POLL_MS = 1_000;
const POLL_MS = 50;
/** Hints of this time are sent together. */
const HINT_MS = 5;
/** More spaces are sent as "look at all": a payload takes 8,000 bytes. */
const HINT_SPACES_MAX = 50;
const HINT_BYTES_MAX = 7_000;

interface Hint {
  /** The writer that changed something. */
  readonly by: number;
  readonly spaces: readonly string[] | undefined;
  readonly journal: boolean;
  /** Sent by `publish`: the outbox has rows. */
  readonly outbox?: true;
}

/** The other writers, as a look finds them. */
interface Counters {
  readonly sum: string;
  readonly others: number;
  /** No live writer is older than this one. */
  readonly isFirst: boolean;
  readonly outbox: boolean;
}

export class Watch {
  readonly #options: ResolvedOptions;
  readonly #host: Host;
  readonly #incarnation: () => number;
  readonly #published: () => void;
  readonly #watchers = new Set<ListenerCalls>();
  #link: DatabaseLink | undefined;
  #isConnecting = false;
  #timer: Timer | undefined;
  #isClosed = false;
  /** The sum of the counters of the other writers at the last look; first of all, when the store was opened. */
  #seen: string | undefined;
  /** Whether another writer is open: without one, no hint is sent. */
  #hasOthers = true;
  /** Whether this store moves published events at once; the others leave it to the next look. */
  #isFirst = true;
  #hintTimer: Timer | undefined;
  #hintSpaces = new Set<string>();
  #hintJournal = false;
  /** Statements of polls and hints. */
  statements = 0;

  /** `published`: events of the user's transactions wait in the outbox. */
  constructor(options: ResolvedOptions, incarnation: () => number, published: () => void) {
    this.#options = options;
    this.#host = options.host;
    this.#incarnation = incarnation;
    this.#published = published;
  }

  add(listener: (change: StoreChange) => void): () => void {
    const watcher = new ListenerCalls(this.#host, listener);
    this.#watchers.add(watcher);
    this.#wake();
    return () => {
      watcher.stop();
      this.#watchers.delete(watcher);
    };
  }

  /** A batch of this process was applied. */
  wrote(spaces: readonly string[], journal: boolean): void {
    for (const watcher of this.#watchers) {
      for (const space of spaces) watcher.note(space, journal);
      if (spaces.length === 0) watcher.note(undefined, journal);
    }
    if (!this.#hasOthers || this.#options.notice === "poll") return;
    for (const space of spaces) this.#hintSpaces.add(space);
    this.#hintJournal ||= journal;
    this.#hintTimer ??= this.#host.timer(HINT_MS, () => void this.#hint(), { keepAlive: false });
    this.#wake();
  }

  /** Everything may have changed while the database was away. */
  connectionChanged(): void {
    for (const watcher of this.#watchers) watcher.noteConnection();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#hintTimer?.cancel();
    for (const watcher of this.#watchers) watcher.stop();
    this.#watchers.clear();
    await this.#link?.close();
  }

  /** Connects and starts the polls, with the first watcher or the first write. */
  #wake(): void {
    if (this.#timer !== undefined || this.#isConnecting || this.#isClosed) return;
    this.#isConnecting = true;
    void this.#connect();
  }

  async #connect(): Promise<void> {
    try {
      const link = await DatabaseLink.open(this.#options);
      if (this.#isClosed) return await link.close();
      this.#link = link;
      if (this.#options.notice === "listen") {
        link.onNotice((payload) => this.#told(payload));
        await link.query(`LISTEN ${this.#channel}`);
      }
      await this.#look();
      if (this.#hintTimer === undefined && (this.#hintJournal || this.#hintSpaces.size > 0)) await this.#hint();
    } catch (error) {
      databaseError(error);
      this.#link?.destroy();
      this.#link = undefined;
    }
    this.#isConnecting = false;
    this.#arm();
  }

  get #channel(): string {
    return `"${this.#options.schema}"`;
  }

  #arm(): void {
    if (this.#isClosed) return;
    const pollMs = this.#options.notice === "listen" && this.#link?.isOpen ? LISTEN_POLL_MS : POLL_MS;
    this.#timer = this.#host.timer(pollMs, () => void this.#poll(), { keepAlive: false });
  }

  async #poll(): Promise<void> {
    if (this.#link?.isOpen !== true) {
      this.#timer = undefined;
      this.#wake();
      return;
    }
    try {
      await this.#look();
    } catch (error) {
      databaseError(error);
      this.#link?.destroy();
    }
    this.#arm();
  }

  /** Reads the counters of the other writers: later changes are compared with them. */
  async begin(link: DatabaseLink): Promise<void> {
    this.#seen = (await this.#counters(link))?.sum;
  }

  async #look(): Promise<void> {
    const link = this.#link;
    const counters = link && (await this.#counters(link));
    if (counters === undefined) return;
    this.#hasOthers = counters.others > 0;
    this.#isFirst = counters.isFirst;
    if (counters.outbox) this.#published();
    const hasMoved = this.#seen !== counters.sum;
    this.#seen = counters.sum;
    if (hasMoved) this.#tell({ by: 0, spaces: undefined, journal: true });
  }

  async #counters(link: DatabaseLink): Promise<Counters | undefined> {
    this.statements++;
    const [row] = await link.query(
      `SELECT coalesce(sum(moves), 0)::text || ' ' || coalesce(max(incarnation), 0) AS sum,
         count(*) FILTER (WHERE NOT ended) AS others,
         count(*) FILTER (WHERE NOT ended AND incarnation < $1 AND seen_at > clock_timestamp() - interval '30 s') = 0 AS first,
         EXISTS (SELECT FROM ${this.#options.schema}.outbox WHERE problem IS NULL) AS outbox
       FROM ${this.#options.schema}.writer WHERE incarnation <> $1`,
      [this.#incarnation()],
      `${this.#options.schema} look`,
    );
    if (row === undefined) return undefined;
    const { sum, others, first, outbox } = row;
    return { sum: String(sum), others: Number(others), isFirst: first === true, outbox: outbox === true };
  }

  #told(payload: string): void {
    const hint = JSON.parse(payload) as Hint;
    if (hint.outbox === true) {
      if (this.#isFirst) this.#published();
    } else if (hint.by !== this.#incarnation()) this.#tell(hint);
  }

  #tell({ spaces, journal }: Hint): void {
    for (const watcher of this.#watchers) {
      watcher.noteForeign();
      if (spaces === undefined) watcher.noteAll();
      else for (const space of spaces) watcher.note(space, journal);
      if (spaces?.length === 0) watcher.note(undefined, journal);
    }
  }

  async #hint(): Promise<void> {
    this.#hintTimer = undefined;
    // Sent when the connection is there.
    if (this.#link?.isOpen !== true) return;
    const spaces = this.#hintSpaces.size > HINT_SPACES_MAX ? undefined : [...this.#hintSpaces];
    const hint: Hint = { by: this.#incarnation(), spaces, journal: this.#hintJournal };
    this.#hintSpaces = new Set();
    this.#hintJournal = false;
    let text = JSON.stringify(hint);
    if (Buffer.byteLength(text) > HINT_BYTES_MAX) text = JSON.stringify({ ...hint, spaces: undefined });
    try {
      this.statements++;
      await this.#link?.query("SELECT pg_notify($1, $2)", [this.#options.schema, text], `${this.#options.schema} hint`);
    } catch (error) {
      // The others look once a second.
      databaseError(error);
    }
  }
}

/** Calls one listener in a microtask; changes until then are merged. */
class ListenerCalls {
  readonly #host: Host;
  readonly #listener: (change: StoreChange) => void;
  #spaces: Set<string> | "unknown" = new Set();
  #journal = false;
  #connection = false;
  #isForeign = false;
  #state: "idle" | "scheduled" | "stopped" = "idle";

  constructor(host: Host, listener: (change: StoreChange) => void) {
    this.#host = host;
    this.#listener = guarded(host, listener);
  }

  note(space: string | undefined, journal: boolean): void {
    if (space !== undefined && this.#spaces !== "unknown") this.#spaces.add(space);
    this.#journal ||= journal;
    this.#schedule();
  }

  /** Anything may have changed. */
  noteAll(): void {
    this.#spaces = "unknown";
    this.#journal = true;
    this.#schedule();
  }

  /** Another store object made the change that is noted next. */
  noteForeign(): void {
    this.#isForeign = true;
  }

  noteConnection(): void {
    this.#connection = true;
    this.#isForeign = true;
    this.noteAll();
  }

  stop(): void {
    this.#state = "stopped";
  }

  #schedule(): void {
    if (this.#state !== "idle") return;
    this.#state = "scheduled";
    // A further microtask: the answers to the writes of this task come first.
    this.#host.microtask(() => this.#host.microtask(this.#call));
  }

  readonly #call = (): void => {
    if (this.#state === "stopped") return;
    const spaces = this.#spaces === "unknown" ? undefined : [...this.#spaces];
    const connection = this.#connection ? ({ connection: true } as const) : {};
    const foreign = this.#isForeign ? ({ isForeign: true } as const) : {};
    const change: StoreChange = { spaces, journal: this.#journal, ...foreign, ...connection };
    this.#connection = false;
    this.#isForeign = false;
    this.#spaces = new Set();
    this.#journal = false;
    this.#state = "idle";
    this.#listener(change);
  };
}
