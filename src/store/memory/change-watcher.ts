/**
 * Tells one listener, in a microtask of its host, that something has changed; changes until then are told together. SPEC: S23.
 *
 * One microtask later than need be: then the answers to the writes of one breath have come before, and a replica that made them is not
 * told to read what it knows already.
 */
import { guarded } from "../../host/hook.ts";
import type { Host } from "../../host/host.ts";
import type { StoreChange } from "../store.ts";
import type { Watcher } from "./memory-disk.ts";

export class ChangeWatcher implements Watcher {
  readonly #host: Host;
  readonly #listener: (change: StoreChange) => void;
  /** What the listener has not been told of. */
  readonly #spaces = new Set<string>();
  #journal = false;
  #state: "idle" | "scheduled" | "stopped" = "idle";

  constructor(host: Host, listener: (change: StoreChange) => void) {
    this.#host = host;
    this.#listener = guarded(host, listener);
  }

  note(space: string | undefined, journal: boolean): void {
    if (this.#state === "stopped") return;
    if (space !== undefined) this.#spaces.add(space);
    this.#journal ||= journal;
    if (this.#state === "scheduled") return;
    this.#state = "scheduled";
    this.#host.microtask(() => this.#host.microtask(this.#tell));
  }

  stop(): void {
    this.#state = "stopped";
  }

  readonly #tell = (): void => {
    if (this.#state === "stopped") return;
    const change = { spaces: [...this.#spaces], journal: this.#journal };
    this.#spaces.clear();
    this.#journal = false;
    this.#state = "idle";
    this.#listener(change);
  };
}
