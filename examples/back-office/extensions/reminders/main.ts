/**
 * Reminders through the kernel's durable timer, and a word every weekday morning through a schedule. Two capabilities: one that asks the
 * timer, and one whose commit says that a reminder rang. A reminder that was set twice has two timers; its id sees to it that it rings once.
 */

import type { Extension, ExtensionContext } from "millrace/extensions";
import type { KernelParts } from "millrace/kernel";
import { capability, transactional } from "millrace/loop";
import type { Space } from "millrace/signals";
import { type Shaped, shape } from "../../shape.ts";

const SET = { reminderId: "text?", text: "text", inMs: "number" } as const;
const RING = { reminderId: "text", text: "text" } as const;

export default class Reminders implements Extension {
  #context!: ExtensionContext;

  initialize(context: ExtensionContext): void {
    this.#context = context;
  }

  getCapabilities({ space }: KernelParts) {
    return { clock: clock(), bell: bell(space) };
  }

  /** `morning`: the only task there is. */
  async executeTask(): Promise<{ text: string } | null> {
    const { open, hoursLeft } = (await this.#context.query("Tasks.Totals", null)) as Record<string, number>;
    return open === 0 ? null : { text: `Good morning: ${open} open, ${hoursLeft} h to go` };
  }
}

function clock() {
  return capability({
    description: "says something later",
    sends: { "Timer.Set": "command" },
    commands: {
      "Reminders.Set": {
        input: shape(SET),
        handle: async ({ reminderId, text, inMs }: Shaped<typeof SET>, { command }, message) => {
          const ring = { reminderId: reminderId ?? message.metadata.id, text };
          await command("Timer.Set", {
            delayMs: inMs,
            message: { kind: "command", type: "Reminders.Ring", data: ring },
          });
          return { reminderId: ring.reminderId };
        },
      },
    },
  });
}

function bell(space: Space) {
  const rung = space.cell<Readonly<Record<string, string>>>("reminders/rung", {});
  return transactional({
    space,
    description: "rings reminders, each once",
    emits: { "Reminder.Rang": shape(RING) },
    commands: {
      "Reminders.Ring": {
        input: shape(RING),
        handle: ({ reminderId, text }: Shaped<typeof RING>, tx) => {
          if (tx.get(rung.key(reminderId)) !== undefined) return { rang: false };
          tx.set(rung.key(reminderId), text);
          tx.emit("Reminder.Rang", { reminderId, text });
          return { rang: true };
        },
      },
    },
    queries: {
      "Reminders.Rung": { handle: async () => ({ rung: Object.values((await rung.pull()) ?? {}) }) },
    },
  });
}
