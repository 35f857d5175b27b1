/** Tells whoever sits at the terminal. Saying something twice after a crash does no harm, so it takes no receipt. */
import { type Cell, capability } from "millrace";
import type { Totals } from "./tasks.ts";

interface News {
  readonly title: string;
  readonly text: string;
}

export function desk(totals: Cell<Totals>) {
  // Somebody looks, so the totals are kept up to date; said when they have been the same for a moment.
  const sayTotals = (now: Totals | undefined) => {
    if (now && now.open + now.done > 0)
      console.log(`totals     ${now.open} open, ${now.done} done, ${now.hoursLeft} h to go`);
  };
  totals.sink(sayTotals, { debounceMs: 250 });
  const say = (line: (news: News) => string) => (data: unknown) => console.log(line(data as News));
  return capability({
    description: "tells whoever sits at the terminal",
    on: {
      "Task.Added": say(({ title }) => `new task   ${title}`),
      "Reminder.Rang": say(({ text }) => `reminder   ${text}`),
      "Work.Finished": say(({ title }) => `finished   ${title}`),
    },
  });
}
