/**
 * Tells listeners what changed, synchronously and in order. A listener may commit: what that changes is told after the
 * present notification has reached everybody. Listeners must not throw; one that does ends the call that made the change,
 * after the others were told.
 */
import type { Notification, NotificationListener } from "./change.ts";

export class Notifier {
  readonly #listeners = new Set<NotificationListener>();
  readonly #queue: Notification[] = [];
  #telling = false;

  subscribe(listener: NotificationListener): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  tell(notification: Notification): void {
    if (notification.changes.length === 0) return;
    this.#queue.push(notification);
    if (this.#telling) return;
    this.#telling = true;
    const errors: unknown[] = [];
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      for (const listener of this.#listeners) {
        try {
          listener(next);
        } catch (error) {
          errors.push(error);
        }
      }
    }
    this.#telling = false;
    if (errors.length > 0) throw errors.length === 1 ? errors[0] : new AggregateError(errors, "listeners failed");
  }
}
