/** Reminders: a command that is sent later, in the same commit; and a report on every weekday morning. */
import { type AppParts, type Computed, command, cron } from "millrace";
import { shape } from "./shape.ts";

export function remindersOf({ cell, event }: AppParts, totals: Computed<{ open: number; hoursLeft: number }>) {
  const rung = cell<Record<string, string>>("rung", {});
  const rang = event("Reminder.Rang", shape({ text: "text" }));
  // A reminder that was set twice is sent twice; its id makes it ring once.
  const ring = command(shape({ reminderId: "text", text: "text" }), ({ reminderId, text }, tx) => {
    if (tx.get(rung)[reminderId] !== undefined) return { rang: false };
    tx.set(rung.key(reminderId), text);
    tx.emit(rang, { text });
    return { rang: true };
  });
  return {
    commands: {
      "Reminders.Set": command(
        shape({ reminderId: "text?", text: "text", inMs: "number" }),
        ({ reminderId, text, inMs }, tx) => {
          const id = reminderId ?? tx.newId();
          tx.send(ring, { reminderId: id, text }, { delay: inMs });
          return { reminderId: id };
        },
      ),
      "Reminders.Ring": ring,
    },
    queries: { "Reminders.Rung": () => ({ rung: Object.values(rung.get()) }) },
    events: { rang },
    schedules: {
      morning: cron("0 8 * * 1-5", (_slot, tx) => {
        const { open, hoursLeft } = tx.get(totals);
        if (open > 0) tx.emit(rang, { text: `Good morning: ${open} open, ${hoursLeft} h to go` });
      }),
    },
  };
}
