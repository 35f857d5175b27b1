/**
 * Tells listeners what changed, synchronously and in order. A listener may commit: what that changes is told after the
 * present notification has reached everybody. What a listener throws goes to the host: whoever made the change has no part in it.
 * Whoever subscribes hears of what happens afterwards, not of what is still being told. SPEC: S48, H20.
 */
import { guarded } from "../host/hook.ts";
import type { Host } from "../host/host.ts";
import type { Notification, NotificationListener } from "./change.ts";
import { NONE } from "./few.ts";

interface Subscription {
  readonly listener: NotificationListener;
  /** Calls the listener, whatever it throws. */
  readonly tell: NotificationListener;
  /** The ordinal of the first notification it is to hear. */
  readonly from: number;
  isOver: boolean;
}

/** What waits until the present notification has reached everybody. */
interface Queued {
  readonly notification: Notification;
  readonly ordinal: number;
  readonly except: NotificationListener | undefined;
}

export class Notifier {
  readonly #host: Host;
  /** Another list with every change of it: the present one may be being gone through. */
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

  /** Tells everybody but one listener who knows already; makes the notification only if there is anybody else. */
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
