import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import { Space } from "../../src/cells/space.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { capability } from "../../src/loop/define-capability.ts";
import type { CapabilityContext } from "../../src/loop/mailbox-actor.ts";
import { timerCapability } from "../../src/loop/timer.ts";
import { transactional } from "../../src/loop/transactional.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import type { Tx } from "../../src/work/tx.ts";
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
  const secret = space.cell<number>("secret", undefined, { label: ["s"] });
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
        [`${type}.Secret`]: { handle: (_: unknown, tx: Tx) => tx.get(secret) ?? null },
        [`${type}.Open`]: { handle: (_: unknown, tx: Tx) => tx.get(open) ?? null },
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
  test("[L50] a connection with a clearance can set, repeat and cancel no timer, and none is armed", async () => {
    const host = simulatedHost(1);
    const { loop, settle } = await loopSetup({ timer: timerCapability({ store: memoryStore({ host }) }) }, { host });
    const cleared = new ClearedClient("cleared", []);
    const message = { kind: "command", type: "High.Secret", data: null };
    loop.receive(command("Timer.Set", "set", { delayMs: 10, message }), cleared);
    loop.receive(command("Timer.Every", "every", { everyMs: 10, message }), cleared);
    loop.receive(command("Timer.Cancel", "cancel", { timerId: "any" }), cleared);
    await settle();
    expect(cleared.answers).toEqual(["error set 403", "error every 403", "error cancel 403"]);
    expect(loop.liveness.timers).toBe(0);
  });

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

  test("[F21] [F22] a connection with a clearance reaches only capabilities within it, and no events", async () => {
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

describe("what lies beside a handler's own answer", () => {
  test("[F1] [F9] the receipt of a command that has read labelled data is labelled as that data", async () => {
    const host = simulatedHost(1);
    const space = await Space.open({ store: memoryStore({ host }), host, name: "s" });
    const secret = space.cell<number>("secret", undefined, { label: ["s"] });
    secret.set(1);
    await host.advance(0);
    const all = transactional({
      space,
      description: "tells all",
      commands: { "All.Secret": { handle: (_: unknown, tx: Tx) => tx.get(secret) ?? null } },
    });
    const { loop, settle, client } = await loopSetup({ all }, { host });
    const one = client();
    loop.receive(command("All.Secret", "r1"), one);
    await settle();
    expect(one.answers).toEqual(["reply r1 1"]);
    const receipt = space.cell("receipt/r1");
    const read = (clearance: readonly string[]) =>
      host.run(() => receipt.pull({ clearance })).catch((error: { code?: string }) => error.code);
    expect(await read(["s"])).toMatchObject({ result: 1 });
    expect(await read([])).toBe("LABEL_REFUSED");
  });

  test("[F1] [F9] a connection with a clearance sets, repeats and cancels no timers", async () => {
    const host = simulatedHost(1);
    const { loop, settle } = await loopSetup({ timer: timerCapability({ store: memoryStore({ host }) }) }, { host });
    const message = { kind: "command", type: "Build.Run", data: null };
    const requests = [
      command("Timer.Set", "a", { delayMs: 10, message }),
      command("Timer.Every", "b", { everyMs: 60_000, message }),
      command("Timer.Cancel", "c", { timerId: "a" }),
    ];
    for (const clearance of [[], ["s"]]) {
      const cleared = new ClearedClient("cleared", clearance);
      for (const request of requests) loop.receive(request, cleared);
      await settle();
      expect(cleared.answers).toEqual(["error a 403", "error b 403", "error c 403"]);
    }
    const open = new Client("open");
    loop.receive(command("Timer.Set", "d", { delayMs: 10, message }), open);
    await settle();
    expect(open.received.map(({ kind }) => kind)).toEqual(["reply"]);
  });
});

describe("reads of a capability with a clearance", () => {
  async function readers() {
    const host = simulatedHost(1);
    const space = await Space.open({ store: memoryStore({ host }), host, name: "s" });
    const secret = space.cell<number>("secret", undefined, { label: ["s"] });
    const open = space.cell<number>("open");
    const sum = space.computed("sum", () => (secret.get() ?? 0) + 1);
    secret.set(1);
    open.set(2);
    await host.advance(0);
    const queries = (type: string) => ({
      [`${type}.Pull`]: { handle: async () => (await secret.pull()) ?? null },
      [`${type}.Wide`]: { handle: async () => (await secret.pull({ clearance: ["s"] })) ?? null },
      [`${type}.Sum`]: { handle: async () => (await sum.pull()) ?? null },
      [`${type}.Get`]: { handle: () => secret.get() ?? null },
      [`${type}.Open`]: { handle: async () => (open.get() ?? 0) + ((await open.pull()) ?? 0) },
      [`${type}.Transact`]: { handle: () => space.transact(() => secret.get() ?? null) },
      [`${type}.Begin`]: {
        handle: () => {
          using tx = space.begin();
          return tx.get(secret) ?? null;
        },
      },
      [`${type}.Later`]: {
        handle: async (_: unknown, { within }: CapabilityContext) => {
          await Promise.resolve();
          return (await within(() => secret.pull())) ?? null;
        },
      },
    });
    const asks = (type: string) => ({
      [type]: { handle: (_: unknown, c: CapabilityContext) => c.query("All.Pull", null) },
    });
    const { loop, settle } = await loopSetup(
      {
        low: transactional({ space, description: "low", clearance: [], queries: queries("Low") }),
        high: transactional({ space, description: "high", clearance: ["s"], queries: queries("High") }),
        plain: capability({ description: "plain", clearance: [], queries: queries("Plain") }),
        all: transactional({ space, description: "all", queries: queries("All") }),
        asker: capability({
          ...{ description: "asks", clearance: [], sends: { "All.Pull": "query" } },
          queries: asks("Asker.Ask"),
        }),
        knower: capability({ description: "asks", sends: { "All.Pull": "query" }, queries: asks("Knower.Ask") }),
      },
      { host },
    );
    let requests = 0;
    const ask = async (type: string) => {
      const client = new Client("c");
      loop.receive(query(type, `r${++requests}`), client);
      await settle();
      return (client.answers.at(-1) as string).replace(/ \S+ /, " ");
    };
    return { ask, secret };
  }
  const READS = ["Pull", "Wide", "Get", "Transact", "Begin", "Later", "Sum"];

  test("[F9] queries of a capability are refused reads above its clearance with 403 and without a value", async () => {
    const { ask, secret } = await readers();
    for (const who of ["Low", "Plain"]) {
      for (const read of READS) expect(`${read} ${await ask(`${who}.${read}`)}`).toBe(`${read} error 403`);
      expect(await ask(`${who}.Open`)).toBe("reply 4");
    }
    for (const who of ["High", "All"])
      for (const read of READS)
        expect(`${read} ${await ask(`${who}.${read}`)}`).toBe(`${read} reply ${read === "Sum" ? 2 : 1}`);
    // Afterwards plain reads have no clearance again.
    expect(secret.get()).toBe(1);
  });

  test("[F9] a clearance of invalid names is refused when the capability is defined", () => {
    const define = () =>
      capability({ description: "x", clearance: [""], queries: { "X.Ask": { handle: () => null } } });
    expect(define).toThrow("a label is a list of names");
  });

  test("[F21] an actor with a clearance reaches only capabilities with a clearance within its own", async () => {
    const { ask } = await readers();
    expect(await ask("Asker.Ask")).toBe("error 403");
    expect(await ask("Knower.Ask")).toBe("reply 1");
  });
});

describe("labels of messages", () => {
  test("[F11] messages of a transactional handler carry the label of its reads, before and after an await; its own row does not", async () => {
    const host = simulatedHost(1);
    const store = memoryStore({ host });
    const space = await Space.open({ store, host, name: "s" });
    const secret = space.cell<number>("secret", undefined, { label: ["s"] });
    const handle = (_: unknown, tx: Tx) => {
      tx.emit("Teller.Told", null);
      return tx.get(secret) ?? null;
    };
    const { loop, settle } = await loopSetup(
      {
        teller: transactional({
          ...{ space, description: "tells", emits: { "Teller.Told": true } },
          commands: { "Teller.Tell": { handle } },
        }),
      },
      { host },
    );
    loop.receive(command("Teller.Tell", "r1"), new Client("c"));
    await settle();
    const rows = await store.query({ limit: 10 });
    expect(rows.map(({ topic, message }) => [topic, message?.metadata.label]).sort()).toEqual([
      ["Teller.Tell", undefined],
      ["Teller.Told", ["s"]],
    ]);
  });

  async function told() {
    const host = simulatedHost(1);
    const space = await Space.open({ store: memoryStore({ host }), host, name: "s" });
    const [low, high] = [space.cell<number>("low"), space.cell<number>("high", undefined, { label: ["s"] })];
    await host.advance(0);
    const heard: string[] = [];
    const listener = (name: string, clearance?: readonly string[]) =>
      capability({
        ...(clearance ? { clearance } : {}),
        description: name,
        on: { "Teller.Told": () => void heard.push(name) },
      });
    const writer = (cell: Cell<number | undefined>) => ({ handle: (_: unknown, tx: Tx) => void tx.set(cell, 1) });
    const { loop, settle } = await loopSetup(
      {
        everybody: listener("everybody"),
        cleared: listener("cleared", ["s"]),
        stranger: listener("stranger", []),
        asker: capability({
          description: "asks, because of what it heard",
          sends: { "Writer.Low": "command", "Writer.High": "command", "Small.Ask": "command" },
          on: {
            "Teller.Told": async (_data: unknown, context) => {
              for (const type of ["Writer.Low", "Writer.High", "Small.Ask"])
                await context.command(type, null).then(
                  () => heard.push(type),
                  (error: { code?: number }) => heard.push(`${type} ${error.code}`),
                );
            },
          },
        }),
        writer: transactional({
          ...{ space, description: "writes" },
          commands: { "Writer.Low": writer(low), "Writer.High": writer(high) },
        }),
        small: capability({ description: "low", clearance: [], commands: { "Small.Ask": { handle: () => null } } }),
      },
      { host },
    );
    const tell = async (label?: readonly string[]) => {
      const metadata = { id: host.id(), timestamp: 0, ...(label ? { label } : {}) };
      loop.receive({ kind: "event", type: "Teller.Told", data: null, metadata }, new Client("c"));
      await settle();
      return heard.splice(0).sort();
    };
    return { tell, low, high };
  }

  test("[F11] an event from labelled data does not reach an uncleared capability, and its consequences carry the label", async () => {
    const { tell, low, high } = await told();
    expect(await tell()).toEqual(["Small.Ask", "Writer.High", "Writer.Low", "cleared", "everybody", "stranger"]);
    low.delete();
    high.delete();
    expect(await tell(["s"])).toEqual(["Small.Ask 403", "Writer.High", "Writer.Low 500", "cleared", "everybody"]);
    expect([low.get(), high.get()]).toEqual([undefined, 1]);
  });
});
