/**
 * Mail from files: a text that is put into `new/` of the extension's folder (`.millrace/extensions/inbox/new/`) is
 * taken as a mail and moved to `cur/`. If the process dies in between, the file is taken again under the same id, its
 * name, and the mail is kept once.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Extension, ExtensionContext } from "millrace/extensions";

export default class Inbox implements Extension {
  #context!: ExtensionContext;

  initialize(context: ExtensionContext): void {
    this.#context = context;
    for (const folder of ["new", "cur"]) mkdirSync(join(context.dataDir, folder), { recursive: true });
  }

  async runBackground(signal: AbortSignal): Promise<void> {
    const { config, dataDir } = this.#context;
    while (!signal.aborted) {
      for (const file of readdirSync(join(dataDir, "new")).sort()) await this.#take(dataDir, file);
      await pause(Number(config["lookEveryMs"] ?? 1_000), undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  async #take(folder: string, file: string): Promise<void> {
    const path = join(folder, "new", file);
    const { from = "unknown", subject = file, text } = parse(readFileSync(path, "utf8"));
    await this.#context.command("Inbox.Receive", { mailId: file, from, subject, text });
    renameSync(path, join(folder, "cur", file));
  }
}

/** `From:` and `Subject:` first, an empty line, then the text. */
function parse(mail: string): { from?: string; subject?: string; text: string } {
  const [head = "", ...body] = mail.split("\n\n");
  const field = (name: string) =>
    head
      .split("\n")
      .find((line) => line.toLowerCase().startsWith(`${name}:`))
      ?.slice(name.length + 1)
      .trim();
  const from = field("from");
  const subject = field("subject");
  return { ...(from ? { from } : {}), ...(subject ? { subject } : {}), text: body.join("\n\n") };
}
