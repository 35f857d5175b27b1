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
import type { Handling } from "./handling.ts";

export class Cause {
  readonly #current = new AsyncLocalStorage<Handling>();
  readonly #outside = AsyncLocalStorage.snapshot();

  /** Runs it as if no extension had called. */
  outside<T>(work: () => T): T {
    return this.#outside(work);
  }

  /** Runs it because of the event that is handled, and of nothing else. */
  during<T>(handling: Handling, work: () => T): T {
    return this.#outside(() => this.#current.run(handling, work));
  }

  /** The call of the handler that runs; undefined outside of any handler. */
  get handling(): Handling | undefined {
    return this.#current.getStore();
  }

  get message(): Message | undefined {
    return this.handling?.message;
  }

  /** What a consequence of it carries. */
  get lineage(): Lineage | undefined {
    return this.message && causedBy(this.message);
  }
}
