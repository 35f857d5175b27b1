/**
 * Events that only the kernel publishes. From a client or a timer, an event of these types would be a forged record.
 * SPEC: N19.
 */
const KERNEL_EVENTS: ReadonlySet<string> = new Set(["Label.Declassified", "Timer.Fired"]);

/** Why a client or a timer may not publish an event of this type; undefined if it may. */
export function kernelEventProblem(type: string): string | undefined {
  if (!type.startsWith("Sys.") && !KERNEL_EVENTS.has(type)) return undefined;
  return `${type} is an event of the kernel, and only the kernel publishes it; choose another type`;
}
