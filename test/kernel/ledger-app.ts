/**
 * An app with state that can be checked from outside: added entries, counted events, work that lasts until it is
 * released.
 */

import type { KernelParts } from "../../src/kernel/kernel-options.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Json } from "../../src/message/json.ts";

interface Entry {
  readonly key: string;
  readonly amount: number;
}

export default ({ space }: KernelParts) => {
  const entries = space.cell<Readonly<Record<string, number>>>("ledger/entries");
  const total = space.cell<number>("ledger/total");
  const heard = space.cell<Readonly<Record<string, number>>>("ledger/heard");
  const held: (() => void)[] = [];
  return {
    ledger: transactional({
      space,
      description: "adds up",
      emits: { "Entry.Added": true },
      commands: {
        "Ledger.Add": {
          handle: ({ key, amount }: Entry, tx) => {
            if (tx.get(entries) === undefined) tx.set(entries, {});
            // Counts how often: a second handling of one command would show.
            tx.set(entries.key(key), (tx.get(entries.key(key)) ?? 0) + amount);
            tx.set(total, (tx.get(total) ?? 0) + amount);
            tx.emit("Entry.Added", { key });
            return { total: tx.get(total) ?? 0 };
          },
        },
        "Ledger.Hear": {
          handle: ({ key }: Entry, tx) => {
            if (tx.get(heard) === undefined) tx.set(heard, {});
            tx.set(heard.key(key), 1);
            return null;
          },
        },
      },
      queries: {
        "Ledger.Read": {
          handle: async () => ({
            // A list: an object in a message has a bounded number of keys.
            entries: Object.entries((await entries.pull()) ?? {}),
            total: (await total.pull()) ?? 0,
            heard: Object.keys((await heard.pull()) ?? {}),
          }),
        },
      },
    }),
    listener: capability({
      description: "notes what it hears",
      sends: { "Ledger.Hear": "command" },
      on: {
        "Entry.Added": async (data, { command }) => {
          await command("Ledger.Hear", data);
        },
      },
    }),
    gate: capability({
      description: "holds until it is told",
      // Work that a test holds may run again after a kill.
      idempotent: true,
      commands: {
        "Gate.Hold": {
          handle: () =>
            new Promise<Json>((resolve) => {
              held.push(() => resolve({ held: true }));
              console.log("holding");
            }),
        },
      },
    }),
    gatekeeper: capability({
      description: "lets go what is held",
      commands: {
        "Gate.Open": {
          handle: () => {
            for (const release of held.splice(0)) release();
            return null;
          },
        },
      },
    }),
  };
};
