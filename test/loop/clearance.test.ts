import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { type TransactionalContext, transactional } from "../../src/loop/transactional.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { Client, command, setup as loopSetup, query } from "./loop-setup.ts";

class ClearedClient extends Client {
  readonly clearance: readonly string[];
  constructor(id: string, clearance: readonly string[]) {
    super(id);
    this.clearance = clearance;
  }
}

async function setup() {
  const host = simulatedHost(1);
  const space = await Space.open({ store: memoryStore({ host }), host, name: "s" });
  const secret = space.cell<number>("secret", { label: ["s"] });
  const open = space.cell<number>("open");
  secret.set(1);
  open.set(2);
  await host.advance(0);
  const answers = (clearance: readonly string[] | undefined, type: string) =>
    transactional({
      space,
      description: type,
      ...(clearance ? { clearance } : {}),
      commands: {
        [`${type}.Secret`]: { handle: (_: unknown, tx: TransactionalContext) => tx.get(secret) ?? null },
        [`${type}.Open`]: { handle: (_: unknown, tx: TransactionalContext) => tx.get(open) ?? null },
      },
      queries: {
        [`${type}.Look`]: { handle: async () => (await secret.pull(clearance ? { clearance } : {})) ?? null },
      },
    });
  const { loop, settle } = await loopSetup(
    {
      all: answers(undefined, "All"),
      low: answers([], "Low"),
      high: answers(["s"], "High"),
      plain: capability({ description: "plain", clearance: [], queries: { "Plain.Ask": { handle: () => 5 } } }),
    },
    { host },
  );
  let requests = 0;
  /** Kind and data of the answer, or the code of the error. */
  return async (client: Client, type: string): Promise<string> => {
    const make = /Look|Ask/.test(type) ? query : command;
    loop.receive(make(type, `r${++requests}`), client);
    await settle();
    const answer = client.answers.at(-1) as string;
    return answer.replace(/ \S+ /, " ");
  };
}

describe("clearance in the loop", () => {
  test("[F9] a capability with a clearance reads within it, and answers 403 where it may not", async () => {
    const ask = await setup();
    const client = new Client("c");
    expect(await ask(client, "All.Secret")).toBe("reply 1");
    expect(await ask(client, "High.Secret")).toBe("reply 1");
    expect(await ask(client, "Low.Secret")).toBe("error 403");
    expect(await ask(client, "Low.Open")).toBe("reply 2");
    expect(await ask(client, "Low.Look")).toBe("error 403");
    expect(await ask(client, "High.Look")).toBe("reply 1");
  });

  test("[F9] a connection with a clearance reaches only what lies within it, and no events", async () => {
    const ask = await setup();
    const low = new ClearedClient("low", []);
    const high = new ClearedClient("high", ["s", "t"]);
    expect(await ask(low, "All.Open")).toBe("error 403");
    expect(await ask(low, "High.Open")).toBe("error 403");
    expect(await ask(low, "Low.Open")).toBe("reply 2");
    expect(await ask(low, "Plain.Ask")).toBe("reply 5");
    expect(await ask(high, "High.Secret")).toBe("reply 1");
    expect(await ask(high, "All.Secret")).toBe("error 403");
    expect(await ask(low, "Sys.Subscribe")).toBe("error 403");
  });
});
