/** An app with hostile names and documents. */
import type { KernelParts } from "../../src/kernel/kernel-options.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { transactional } from "../../src/loop/transactional.ts";

/** Clears the screen, sets title and clipboard, colours, turns text around, and pretends to be a row of a table. */
export const HOSTILE =
  "\u001b[2J\u001b]0;title\u0007\u001b]52;c;cm0gLXJm\u0007\u009b31m\u001b[31m\u202e\u2028\tx\n9   done\u0085";

export default ({ space, bus }: KernelParts) => {
  const cell = space.cell<string>(`cell ${HOSTILE}`);
  space.computed(`node ${HOSTILE}`, () => cell.get()).sink(() => undefined);
  bus.subscribe(
    "Text.Kept",
    () => {
      throw new Error(`bad ${HOSTILE}`);
    },
    { subscriberId: "reader" },
  );
  return {
    texts: transactional({
      ...{ space, description: `keeps texts ${HOSTILE}`, emits: { "Text.Kept": true } },
      commands: {
        "Text.Keep": {
          handle: (text: string, tx) => {
            tx.set(cell, text);
            tx.emit("Text.Kept", { text });
            return text;
          },
        },
      },
    }),
    refuser: capability({
      description: "quotes what it refuses",
      commands: {
        "Text.Refuse": {
          handle: (text: string) => {
            throw new Error(`will not have ${text}`);
          },
        },
      },
    }),
  };
};
