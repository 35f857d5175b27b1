/**
 * Reads mail and decides by a table of words, in place of a language model. It acts through tools only. After a crash
 * an event may reach it twice, so each tool call carries the mail's id and takes effect once.
 */
import type { Json } from "millrace";
import type { AgentInvocation, AgentResponse, AgentTool, Extension, ExtensionContext } from "millrace/extensions";

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
const MAIL = "Read this mail and do what is to be done: ";

export default class Agent implements Extension {
  initialize(context: ExtensionContext): void {
    context.subscribeEvent<Email>("email.received", async ({ payload, correlation }) => {
      await context.invokeAgent(MAIL + JSON.stringify(payload), { correlation });
    });
  }

  getAgentDescriptor() {
    return { name: "clerk", description: "reads mail, makes tasks and reminders, knows the totals" };
  }

  async invoke(task: string, { tools }: AgentInvocation): Promise<AgentResponse> {
    const use = (name: string, input: Json) => toolOf(tools, name).execute(input);
    if (!task.startsWith(MAIL)) {
      const { open, done, hoursLeft } = (await use("totals", null)) as Record<string, number>;
      return { status: "success", content: `${open} open, ${done} done, ${hoursLeft} h to go` };
    }
    const email: Email = JSON.parse(task.slice(MAIL.length));
    const subject = email.subject.toLowerCase();
    const rule = RULES.find(({ word }) => subject.includes(word));
    if (rule) await use("add_task", { taskId: email.mailId, title: rule.title(email), hours: rule.hours });
    const [, count, unit] = subject.match(DELAY) ?? [];
    if (count !== undefined) {
      const inMs = Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
      await use("set_reminder", { reminderId: email.mailId, text: email.subject, inMs });
    }
    return { status: "success", content: rule || count ? "done" : "ignored" };
  }
}

function toolOf(tools: readonly AgentTool[], name: string): AgentTool {
  const tool = tools.find((one) => one.name === name);
  if (!tool) throw new Error(`there is no tool ${name}`);
  return tool;
}
