/**
 * Tells listeners what changed, synchronously and in order. A listener may commit: what that changes is told after the
 * present notification has reached everybody. Listeners must not throw; one that does ends the call that made the change,
 * after the others were told. Whoever subscribes hears of what happens afterwards, not of what is still being told. SPEC: S48.
 */
import type { Notification, NotificationListener } from "./change.ts";

interface Queued {
  readonly notification: Notification;
  readonly ordinal: number;
  readonly except: NotificationListener | undefined;
}

export class Notifier {
  /** With the ordinal of the first notification each is to hear. */
  readonly #listeners = new Map<NotificationListener, number>();
  readonly #queue: Queued[] = [];
  #nextOrdinal = 0;
  #telling = false;

  subscribe(listener: NotificationListener): () => void {
    this.#listeners.set(listener, this.#nextOrdinal);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Tells everybody but one listener who knows already; makes the notification only if there is anybody else. */
  tellOthers(except: NotificationListener, make: () => Notification): void {
    if (this.#listeners.size > (this.#listeners.has(except) ? 1 : 0)) this.tell(make(), except);
  }

  tell(notification: Notification, except?: NotificationListener): void {
    const { changes, labels = [] } = notification;
    if ((changes.length === 0 && labels.length === 0) || this.#listeners.size === 0) return;
    this.#queue.push({ notification, except, ordinal: this.#nextOrdinal++ });
    if (this.#telling) return;
    this.#telling = true;
    let errors: unknown[] | undefined;
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      for (const [listener, from] of this.#listeners) {
        if (listener === next.except || from > next.ordinal) continue;
        try {
          listener(next.notification);
        } catch (error) {
          errors ??= [];
          errors.push(error);
        }
      }
    }
    this.#telling = false;
    if (errors) throw errors.length === 1 ? errors[0] : new AggregateError(errors, "listeners failed");
  }
}
