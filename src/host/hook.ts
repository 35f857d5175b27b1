/**
 * A hook: a user function that is notified without taking part. Its errors and rejections go to the host and have no
 * other effect. SPEC: H20.
 */
import type { Host } from "./host.ts";

/** Wraps the hook so that it never throws. */
export function guarded<Args extends readonly unknown[]>(
  host: Pick<Host, "report">,
  hook: (...args: Args) => unknown,
): (...args: Args) => void {
  return (...args) => {
    try {
      const result = hook(...args);
      if (result instanceof Promise) result.catch((thrown: unknown) => host.report(thrown));
    } catch (thrown) {
      host.report(thrown);
    }
  };
}
