/**
 * Reads mail and decides what is to be done: a table of words, in place of a language model. It only asks others to act. An event may
 * reach it twice, when the process dies at the wrong moment, so what it asks for carries the mail's id, and is done once.
 */
import { capability } from "millrace";

interface Email {
  readonly mailId: string;
  readonly from: string;
  readonly subject: string;
}

/** The first word that occurs in the subject decides. */
const RULES: readonly { word: string; title: (email: Email) => string; hours: number }[] = [
  { word: "invoice", title: ({ from, subject }) => `Pay ${from}: ${subject}`, hours: 0.5 },
  { word: "meeting", title: ({ from, subject }) => `Prepare for ${from}: ${subject}`, hours: 1 },
  { word: "?", title: ({ from, subject }) => `Answer ${from}: ${subject}`, hours: 0.25 },
];

/** "in 10 seconds", "in 5 minutes", "in 2 hours". */
const DELAY = /\bin (\d{1,4}) (second|minute|hour)s?\b/;
const UNIT_MS = { second: 1_000, minute: 60_000, hour: 3_600_000 } as const;

export function agent() {
  return capability({
    description: "makes tasks and reminders of mail",
    sends: { "Tasks.Add": "command", "Reminders.Set": "command" },
    on: {
      "Email.Received": async (data, { command }) => {
        const email = data as never as Email;
        const subject = email.subject.toLowerCase();
        const rule = RULES.find(({ word }) => subject.includes(word));
        if (rule) await command("Tasks.Add", { taskId: email.mailId, title: rule.title(email), hours: rule.hours });
        const [, count, unit] = subject.match(DELAY) ?? [];
        if (count === undefined) return;
        const inMs = Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
        await command("Reminders.Set", { reminderId: email.mailId, text: email.subject, inMs });
      },
    },
  });
}
