/** An app with commands from a sender that does not wait, which last until there is a file called `open`. */
import { existsSync } from "node:fs";
import type { KernelParts } from "../../src/kernel/kernel-options.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { Json } from "../../src/message/json.ts";
import { causedBy, commandMessage } from "../../src/message/lineage.ts";

export default ({ space, bus }: KernelParts) => {
  const count = space.cell<number>("count");
  const hold = async ({ type }: Message): Promise<Json> => {
    console.log(`began ${type}`);
    if (!existsSync("open")) await new Promise(() => undefined);
    return { held: type };
  };
  const holding = { handle: (_: Json, _context: unknown, request: Message) => hold(request) };
  return {
    plain: capability({ description: "must not be repeated", commands: { "Plain.Hold": holding } }),
    idempotent: capability({
      ...{ description: "may be repeated", idempotent: true },
      commands: { "Idempotent.Hold": holding },
    }),
    before: capability({
      ...{ description: "is journaled, whoever waits", idempotent: true, durable: "before" as const },
      commands: { "Before.Hold": holding },
    }),
    counter: transactional({
      ...{ space, description: "counts" },
      commands: {
        "Counter.Add": {
          handle: async (_: Json, tx, request: Message) => {
            await hold(request);
            tx.set(count, (tx.get(count) ?? 0) + 1);
          },
        },
      },
      queries: { "Counter.Read": { handle: async () => (await count.pull()) ?? 0 } },
    }),
    boss: capability({
      ...{ description: "sends, and does not wait", durable: "unawaited" as const },
      sends: { "Plain.Hold": "command", "Idempotent.Hold": "command", "Counter.Add": "command" },
      commands: {
        "Boss.Send": {
          handle: (types, { host, send }, request) => {
            for (const type of types as string[]) send(commandMessage(host, type, null, causedBy(request)));
          },
        },
      },
      queries: {
        "Boss.Journal": {
          handle: async () => {
            const rows = await bus.query({ kind: "command", limit: 100 });
            return rows.map(
              ({ topic, status, error }) => `${topic} ${status}${error === undefined ? "" : ` ${error}`}`,
            );
          },
        },
      },
    }),
  };
};
