/**
 * Notifies listeners of changes, synchronously and in order. A listener may commit: its changes are announced after the
 * current notification has reached all listeners. Errors of a listener go to the host and not to the code that made the
 * change. A new subscriber gets only later notifications, not one under way. SPEC: S48, H20.
 */
import { guarded } from "../host/hook.ts";
import type { Host } from "../host/host.ts";
import type { Notification, NotificationListener } from "./change.ts";
import { NONE } from "./small-list.ts";

interface Subscription {
  readonly listener: NotificationListener;
  /** Calls the listener and catches its errors. */
  readonly tell: NotificationListener;
  /** The ordinal of its first notification. */
  readonly from: number;
  isOver: boolean;
}

/** Waits until the current notification has reached all listeners. */
interface Queued {
  readonly notification: Notification;
  readonly ordinal: number;
  readonly except: NotificationListener | undefined;
}

export class Notifier {
  readonly #host: Host;
  /** Copied on every change: the current list may be in iteration. */
  #subscriptions: readonly Subscription[] = [];
  readonly #queue: Queued[] = [];
  #nextOrdinal = 0;
  #telling = false;

  constructor(host: Host) {
    this.#host = host;
  }

  subscribe(listener: NotificationListener): () => void {
    const tell = guarded(this.#host, listener);
    const subscription = { listener, tell, from: this.#nextOrdinal, isOver: false };
    this.#subscriptions = [...this.#subscriptions, subscription];
    return () => {
      subscription.isOver = true;
      this.#subscriptions = this.#subscriptions.filter((other) => other !== subscription);
    };
  }

  /** Notifies all listeners except one that already knows; creates the notification only if there are others. */
  tellOthers(except: NotificationListener, make: () => Notification): void {
    if (this.#subscriptions.some(({ listener }) => listener !== except)) this.tell(make(), except);
  }

  tell(notification: Notification, except?: NotificationListener): void {
    if (isNothing(notification)) return;
    if (this.#subscriptions.length === 0) return;
    const ordinal = this.#nextOrdinal++;
    if (this.#telling) {
      this.#queue.push({ notification, except, ordinal });
      return;
    }
    this.#telling = true;
    this.#tellOne(notification, ordinal, except);
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      this.#tellOne(next.notification, next.ordinal, next.except);
    }
    this.#telling = false;
  }

  #tellOne(notification: Notification, ordinal: number, except: NotificationListener | undefined): void {
    for (const { listener, tell, from, isOver } of this.#subscriptions) {
      if (!isOver && listener !== except && from <= ordinal) tell(notification);
    }
  }
}

function isNothing({ changes, labels = NONE, unchanged = NONE }: Notification): boolean {
  return changes.length === 0 && labels.length === 0 && unchanged.length === 0;
}
