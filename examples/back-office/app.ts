/**
 * An assistant's back office, run by `npm start`: mail comes in, an agent reads it and makes tasks and reminders of it, totals are kept up
 * to date, and a worker does slow things. Everything lives in one file and survives `kill -9`.
 *
 *     extensions/inbox ──email.received──> extensions/agent ──tools──> tasks ──> totals (derived)
 *                                                            └───────> extensions/reminders ──Timer.Set──> … ──reminder.rang──┐
 *                                          you <── extensions/terminal <──────────────── task.added, work.finished ──────────┘
 *
 * What is always there is here, as capabilities: tasks and slow work. What could be another tomorrow is an extension.
 */
import type { KernelParts } from "millrace/kernel";
import { type Totals, tasks } from "./tasks.ts";
import { worker } from "./worker.ts";

export const extensions = "extensions";

export default ({ space, host }: KernelParts) => {
  const { totals, capability } = tasks(space);
  // Somebody looks, so the totals are kept up to date; said when they have been the same for a moment.
  totals.sink(sayTotals, { debounceMs: 250 });
  return { tasks: capability, ...worker(space, host) };
};

function sayTotals(now: Totals | undefined): void {
  if (now && now.open + now.done > 0)
    console.log(`totals     ${now.open} open, ${now.done} done, ${now.hoursLeft} h to go`);
}
