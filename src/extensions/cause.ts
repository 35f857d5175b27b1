/**
 * What an extension's code is running because of: the event whose handler it is in, however many awaits and calls deep. What it emits and
 * asks for meanwhile is caused by that event and belongs to its conversation, without anybody passing it along. SPEC: X24.
 *
 * It must not follow the calls into the kernel: a dispatcher or a lane that an extension's call has woken goes on with other people's work.
 * Whatever enters the kernel does so `outside`.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Message } from "../message/envelope.ts";
import { causedBy, type Lineage } from "../message/lineage.ts";

export class Cause {
  readonly #current = new AsyncLocalStorage<Message>();
  readonly #outside = AsyncLocalStorage.snapshot();

  /** Runs it as if no extension had called. */
  outside<T>(work: () => T): T {
    return this.#outside(work);
  }

  /** Runs it because of the message, and of nothing else. */
  during<T>(message: Message, work: () => T): T {
    return this.#outside(() => this.#current.run(message, work));
  }

  /** The message that is being handled; undefined outside of any handler. */
  get message(): Message | undefined {
    return this.#current.getStore();
  }

  /** What a consequence of it carries. */
  get lineage(): Lineage | undefined {
    return this.message && causedBy(this.message);
  }
}
