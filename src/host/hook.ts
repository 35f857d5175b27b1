/**
 * A hook: a function of the user's that is told of something, and takes no part in it. What it throws, or what its promise is rejected with, ends
 * nothing and disturbs nobody; the host is told, which is the last resort. SPEC: H20.
 */
import type { Host } from "./host.ts";

/** The hook as it may be called from anywhere. */
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
