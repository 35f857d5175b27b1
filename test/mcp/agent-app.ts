/** An app for agents: notes, and a command that takes as long as a file is missing. */
import { existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { z } from "zod";
import { app } from "../../src/app/app.ts";
import { command, query } from "../../src/app/request.ts";

export default app("notes", ({ cell }) => {
  const notes = cell<string[]>("notes", []);
  return {
    commands: {
      "Notes.Add": command(
        z.object({ text: z.string().min(1) }),
        ({ text }, tx) => {
          if (text === "secret") return tx.refuse("FORBIDDEN_WORD", { data: { word: text } });
          tx.push(notes, text);
          return { count: tx.get(notes).length };
        },
        { description: "Adds a note" },
      ),
      "Notes.Import": async ({ file }: { file: string }, tx) => {
        while (!existsSync(file)) await pause(10);
        tx.push(notes, file);
        return { count: tx.get(notes).length };
      },
      "Notes.Clear": (_: null, tx) => tx.set(notes, []),
    },
    queries: {
      "Notes.All": () => notes.get(),
      "Notes.Longest": query(z.number(), (length) => ({ found: notes.get().filter((note) => note.length > length) })),
    },
  };
});
