/** Tools for whichever agent there is: each is a command or a query of the kernel. What an agent asks for twice under one id is done once. */
import type { Json } from "millrace";
import type { Extension, ExtensionContext, Tool } from "millrace/extensions";

export default class OfficeTools implements Extension {
  #context!: ExtensionContext;

  initialize(context: ExtensionContext): void {
    this.#context = context;
  }

  getTools(): readonly Tool[] {
    const command = (type: string) => (input: Json) => this.#context.command(type, input);
    const query = (type: string) => () => this.#context.query(type, null);
    return [
      { name: "add_task", description: "adds a task {taskId, title, hours}", execute: command("Tasks.Add") },
      { name: "set_reminder", description: "says {text} {inMs} later", execute: command("Reminders.Set") },
      { name: "totals", description: "what is open and done", execute: query("Tasks.Totals") },
    ];
  }
}
