/** Tools for the agent. Each is a command or a query of the app; a repeated call with the same id takes effect once. */
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
      { name: "set_reminder", description: "reminds of {text} after {inMs}", execute: command("Reminders.Set") },
      { name: "totals", description: "open and finished tasks", execute: query("Tasks.Totals") },
    ];
  }
}
