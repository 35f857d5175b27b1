/** Actors that handle several messages at once, and the circles of waiting that they are part of. */
import { describe, expect, test } from "#test";
import { CIRCLE_LOOK_MS, CIRCLE_WAIT_MS } from "../../src/limits.ts";
import { capability } from "../../src/loop/define-capability.ts";
import type { CapabilityContext } from "../../src/loop/mailbox-actor.ts";
import { Failure } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { command, setup } from "./loop-setup.ts";

/** `A.Run` asks `b`, which asks `A.Say`: with the key of the request, or with another one. */
function asking(options: { concurrency?: number; serialBy?: (data: Json) => string }, back = (data: Json) => data) {
  const a = capability({
    ...{ description: "a", sends: { "B.Run": "command" }, durable: false },
    ...options,
    commands: {
      "A.Run": { handle: (data: Json, context: CapabilityContext) => context.command("B.Run", data) },
      "A.Say": { handle: (data: Json) => `said ${data}` },
    },
  });
  const b = capability({
    ...{ description: "b", sends: { "A.Say": "command" }, durable: false },
    commands: { "B.Run": { handle: (data: Json, context: CapabilityContext) => context.command("A.Say", back(data)) } },
  });
  return setup({ a, b });
}

describe("an actor with several places", () => {
  test("[U115] an actor answers a request that comes back to it while one of its places is free", async () => {
    const { loop, client, host } = await asking({ concurrency: 2 });
    const one = client();
    loop.receive(command("A.Run", "first", 1), one);
    await host.advance(10);
    expect(one.answers).toEqual(['reply first "said 1"']);
  });

  test("[U115] an actor is stuck if all its places wait in a circle: the request that closed it is given up", async () => {
    const { loop, client, host, observed } = await asking({ concurrency: 2 });
    const one = client();
    loop.receive(command("A.Run", "first", 1), one);
    loop.receive(command("A.Run", "second", 2), one);
    await host.advance(CIRCLE_WAIT_MS - 2 * CIRCLE_LOOK_MS);
    expect(one.answers).toEqual([]);
    expect(observed.some(({ type }) => type === "Sys.WaitingCircle")).toBe(true);
    await host.advance(10 * CIRCLE_LOOK_MS);
    expect(one.answers.map((answer) => answer.split(" ").slice(0, 2).join(" "))).toEqual([
      "error first",
      "reply second",
    ]);
  });

  test("[U115] with serialBy, a request that waits behind its own cause is refused at once, and one of another key is not", async () => {
    const same = await asking({ serialBy: String });
    const one = same.client();
    same.loop.receive(command("A.Run", "same", 1), one);
    await same.host.advance(10);
    expect(one.answers.map((answer) => answer.split(" ").slice(0, 2).join(" "))).toEqual(["error same"]);
    const other = await asking({ serialBy: String }, (data) => `other ${data}`);
    const two = other.client();
    other.loop.receive(command("A.Run", "other", 1), two);
    await other.host.advance(10);
    expect(two.answers).toEqual(['reply other "said other 1"']);
  });

  test("[U106] a message with a throwing key function fails, and the others are handled", async () => {
    const serialBy = (data: Json) => {
      if (data === 1) throw new Error("no key");
      return data === 2 ? (2 as never) : String(data);
    };
    const { loop, client, host } = await asking({ serialBy });
    const one = client();
    for (const data of [1, 2, 3]) loop.receive(command("A.Say", `m${data}`, data), one);
    await host.advance(10);
    expect(one.answers).toEqual(["error m1 500", "error m2 500", 'reply m3 "said 3"']);
  });

  test("[U104] an awaited command is not tried again once its requester waits no longer", async () => {
    let calls = 0;
    const a = capability({
      ...{ description: "a", durable: false, retry: { attempts: 100, backoff: { startMs: 400, factor: 1 } } },
      commands: {
        "A.Run": {
          handle: () => {
            calls++;
            throw new Error("not yet");
          },
        },
        "A.Say": { handle: () => "said" },
      },
    });
    const { loop, client, host } = await setup({ a }, { requestTimeoutMs: 1_000 });
    const one = client();
    loop.receive(command("A.Run", "run"), one);
    await host.advance(10);
    loop.receive(command("A.Say", "say"), one);
    await host.advance(60_000);
    // The actor went on meanwhile.
    expect(one.answers).toEqual(['reply say "said"', "error run 504"]);
    expect(calls >= 3 && calls <= 6).toBe(true);
    expect(loop.liveness.quiescent).toBe(true);
  });

  test("[U104] a refusal to a waiting requester is an answer: it is not tried again and calls no onFailed", async () => {
    let [calls, failures] = [0, 0];
    const a = capability({
      ...{ description: "a", durable: false, retry: 3, onFailed: () => void failures++ },
      commands: {
        "A.Run": {
          handle: () => {
            calls++;
            throw new Failure(409, "sold out");
          },
        },
      },
    });
    const { loop, client, host } = await setup({ a });
    const one = client();
    loop.receive(command("A.Run", "run"), one);
    await host.advance(60_000);
    expect([calls, failures, one.answers]).toEqual([1, 0, ["error run 409"]]);
  });
});
