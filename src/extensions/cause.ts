/**
 * The cause of running extension code: the event whose handler it is in, across awaits and calls. Messages that it
 * sends meanwhile are caused by that event and belong to its conversation, without an argument. SPEC: X24.
 *
 * It must not follow the calls into the kernel: a dispatcher or a lane that an extension's call has woken goes on with
 * other people's work. Calls into the kernel run `outside`.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Message } from "../message/envelope.ts";
import { causedBy, type Lineage } from "../message/lineage.ts";
import type { EventHandling } from "./handling.ts";

export class Cause {
  readonly #current = new AsyncLocalStorage<EventHandling>();
  readonly #outside = AsyncLocalStorage.snapshot();

  /** Runs it as if no extension had called. */
  outside<T>(work: () => T): T {
    return this.#outside(work);
  }

  /** Runs the code with the handled event as its only cause. */
  during<T>(handling: EventHandling, work: () => T): T {
    return this.#outside(() => this.#current.run(handling, work));
  }

  /** The call of the handler that runs; undefined outside of any handler. */
  get handling(): EventHandling | undefined {
    return this.#current.getStore();
  }

  get message(): Message | undefined {
    return this.handling?.message;
  }

  /** Metadata of a message that the handled event causes. */
  get lineage(): Lineage | undefined {
    return this.message && causedBy(this.message);
  }
}
