/**
 * The back office of an assistant, run by `npm start`: mail comes in, an agent reads it and makes tasks and reminders
 * of it, totals follow, and slow work is done in the background. All state is in one file and survives `kill -9`.
 *
 *     extensions/inbox ──> mail ──Email.Received──> extensions/agent ──tools──> tasks ──> totals (derived)
 *                                                                    └────────> reminders ──delay──> Reminder.Rang ──┐
 *                                   you <── extensions/terminal <──────────────── Task.Added, Work.Finished ─────────┘
 *
 * Each file beside this one adds its part to one app. Parts that may be replaced (the agent, the channels) are
 * extensions.
 */
import { app } from "millrace";
import { mailOf } from "./mail.ts";
import { remindersOf } from "./reminders.ts";
import { tasksOf } from "./tasks.ts";
import { workOf } from "./work.ts";

export const extensions = "extensions";

export default app("office", (parts) => {
  const mail = mailOf(parts);
  const tasks = tasksOf(parts);
  const reminders = remindersOf(parts, tasks.totals);
  const work = workOf(parts);
  // Printed when they have been the same for a moment.
  tasks.totals.sink(
    (now) => {
      if (now && now.open + now.done > 0)
        console.log(`totals     ${now.open} open, ${now.done} done, ${now.hoursLeft} h to go`);
    },
    { debounceMs: 250 },
  );
  return {
    description: "mail, tasks, reminders and slow work",
    commands: { ...mail.commands, ...tasks.commands, ...reminders.commands, ...work.commands },
    queries: { ...mail.queries, ...tasks.queries, ...reminders.queries, ...work.queries },
    on: work.on,
    schedules: reminders.schedules,
    events: { ...mail.events, ...tasks.events, ...reminders.events, ...work.events },
  };
});
