/** Transactional handlers that throw: failed only if the read set validates and no receipt exists. */
import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import type { SpawnContext } from "../../src/loop/capability.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Message } from "../../src/message/envelope.ts";
import { Failure } from "../../src/message/error-data.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { rejected } from "../../src/store/rejection.ts";
import { FaultyLine, Gate } from "../store/faulty-store.ts";
import { command, setup } from "./loop-setup.ts";

/** A shop that sells its stock, and refuses when it is sold out. */
async function shop(stock: number) {
  const host = simulatedHost(1);
  const line = new FaultyLine(memoryStore({ host }));
  const space = await host.run(() => Space.open({ store: line.store, host, name: "test" }));
  const left = space.cell<number>("left");
  left.set(stock);
  await host.run(() => space.settled());
  const selling = transactional({
    space,
    description: "sells",
    commands: {
      "Shop.Take": {
        handle: (_data, tx) => {
          const now = tx.get(left) ?? 0;
          if (now === 0) throw new Failure(409, "sold out");
          tx.set(left, now - 1);
          return now - 1;
        },
      },
    },
  });
  const noted: string[] = [];
  const noteFailed = async ({ metadata }: Message) => void noted.push(metadata.id);
  const noting = { ...selling, spawn: (context: SpawnContext) => selling.spawn({ ...context, noteFailed }) };
  const { loop, client } = await setup({ selling: noting }, { host });
  const one = client();
  return { host, line, left, noted, one, take: (id: string) => loop.receive(command("Shop.Take", id), one) };
}

describe("a transactional handler that throws", () => {
  test("[L32] a repeated request of a throwing handler gets the first answer, although it cannot be done again", async () => {
    const { host, one, noted, left, take } = await shop(1);
    take("a");
    await host.advance(100);
    take("a");
    await host.advance(100);
    expect([one.answers, left.get(), noted]).toEqual([["reply a 0", "reply a 0"], 0, []]);
  });

  test("[L32] a repeated request gets the first answer even while the first handling is being committed", async () => {
    const { host, line, one, noted, take } = await shop(1);
    const gate = new Gate();
    line.plan = ({ method }) => (method === "commit" ? { answered: gate.opened } : {});
    take("a");
    await host.advance(100);
    take("b");
    await host.advance(100);
    expect(one.answers).toEqual([]);
    gate.open();
    await host.advance(1_000);
    expect([one.answers.sort(), noted]).toEqual([["error b 409", "reply a 0"], ["b"]]);
  });

  test("[L32] a throwing handler runs again if its reads are not confirmed", async () => {
    const { host, line, one, noted, left, take } = await shop(1);
    const gate = new Gate();
    let isFirst = true;
    line.plan = ({ method }) => {
      if (method !== "commit" || !isFirst) return {};
      isFirst = false;
      return { instead: rejected("refused", "too-large", "not that"), answered: gate.opened };
    };
    take("a");
    take("b");
    await host.advance(100);
    gate.open();
    await host.advance(1_000);
    expect([one.answers.sort(), noted, left.get()]).toEqual([["error a 413", "reply b 0"], [], 0]);
  });
});
