/**
 * Tells listeners what changed, synchronously and in order. A listener may commit: what that changes is told after the
 * present notification has reached everybody. Listeners must not throw; one that does ends the call that made the change,
 * after the others were told.
 */
import type { Notification, NotificationListener } from "./change.ts";

export class Notifier {
  readonly #listeners = new Set<NotificationListener>();
  readonly #queue: { readonly notification: Notification; readonly except: NotificationListener | undefined }[] = [];
  #telling = false;

  subscribe(listener: NotificationListener): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Tells everybody but one listener who knows already; makes the notification only if there is anybody else. */
  tellOthers(except: NotificationListener, make: () => Notification): void {
    if (this.#listeners.size > (this.#listeners.has(except) ? 1 : 0)) this.tell(make(), except);
  }

  tell(notification: Notification, except?: NotificationListener): void {
    if (notification.changes.length === 0) return;
    this.#queue.push({ notification, except });
    if (this.#telling) return;
    this.#telling = true;
    const errors: unknown[] = [];
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      for (const listener of this.#listeners) {
        if (listener === next.except) continue;
        try {
          listener(next.notification);
        } catch (error) {
          errors.push(error);
        }
      }
    }
    this.#telling = false;
    if (errors.length > 0) throw errors.length === 1 ? errors[0] : new AggregateError(errors, "listeners failed");
  }
}
