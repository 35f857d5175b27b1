/** The channel to the terminal. A line that is printed twice after a crash does no harm, so its handlers are plain. */
import type { Extension, ExtensionContext } from "millrace/extensions";
import { capability } from "millrace/loop";
import { type Shaped, shape } from "../../shape.ts";

const QUESTION = { text: "text" } as const;

export default class Terminal implements Extension {
  #context!: ExtensionContext;

  initialize(context: ExtensionContext): void {
    this.#context = context;
    context.subscribeEvent<{ title: string }>("task.added", ({ payload }) => say("new task", payload.title));
    context.subscribeEvent<{ title: string }>("work.finished", ({ payload }) => say("finished", payload.title));
  }

  /** Questions from other processes: `millrace send Desk.Ask '{"text": "What is open?"}'`. */
  getCapabilities() {
    return {
      desk: capability({
        description: "takes questions to the agent",
        commands: {
          "Desk.Ask": {
            input: shape(QUESTION),
            handle: async ({ text }: Shaped<typeof QUESTION>) => ({
              answer: await this.#context.onUserMessage("you", text),
            }),
          },
        },
      }),
    };
  }

  sendMessage(text: string): void {
    say("note", text);
  }

  sendToUser(_userId: string, text: string): void {
    say("answer", text);
  }
}

/** Control characters of a mail must not reach the terminal. */
function say(subject: string, text: string): void {
  console.log(`${subject.padEnd(10)} ${text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, " ")}`);
}
