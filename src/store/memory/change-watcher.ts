/**
 * Notifies one listener of changes in a microtask of its host; changes until then are merged. SPEC: S23.
 *
 * Delayed by one extra microtask, so that the answers to writes of the current task arrive first and the replica that
 * made them need not read the feed.
 */
import { guarded } from "../../host/hook.ts";
import type { Host } from "../../host/host.ts";
import type { StoreChange } from "../store.ts";
import { UntoldWrites, type WriteNote } from "../write-note.ts";
import type { Watcher } from "./document-disk.ts";

export class ChangeWatcher implements Watcher {
  readonly #host: Host;
  readonly #listener: (change: StoreChange) => void;
  readonly #store: object;
  #untold = new UntoldWrites();
  #isForeign = false;
  #state: "idle" | "scheduled" | "stopped" = "idle";

  /** `store`: the store object whose `watch` was called. */
  constructor(host: Host, store: object, listener: (change: StoreChange) => void) {
    this.#host = host;
    this.#store = store;
    this.#listener = guarded(host, listener);
  }

  note(note: WriteNote, by: object): void {
    if (this.#state === "stopped") return;
    this.#untold.add(note);
    this.#isForeign ||= by !== this.#store;
    if (this.#state === "scheduled") return;
    this.#state = "scheduled";
    this.#host.microtask(() => this.#host.microtask(this.#tell));
  }

  stop(): void {
    this.#state = "stopped";
  }

  readonly #tell = (): void => {
    if (this.#state === "stopped") return;
    const change = this.#untold.notice(this.#isForeign);
    this.#untold = new UntoldWrites();
    this.#isForeign = false;
    this.#state = "idle";
    this.#listener(change);
  };
}
