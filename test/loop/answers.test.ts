/** Answers in unexpected places: inside `postMessage`, and invalid ones. */
import { describe, expect, test } from "#test";
import type { Message } from "../../src/message/envelope.ts";
import { BareActor, bare, query, setup } from "./loop-setup.ts";

/** Answers forbidden requests at once; later requests not at all. */
class HastyActor extends BareActor {
  override postMessage(given: Message): void {
    super.postMessage(given);
    if (this.posted.length === 1) this.reply({ ...given, type: "Bare.Other" });
  }
}

describe("an answer inside postMessage", () => {
  test("[L10] [L22] an invalid answer inside postMessage is a 500, and its timeout does not end a later request of the same id", async () => {
    const { loop, client, host } = await setup({ bare: bare(() => new HastyActor()) }, { requestTimeoutMs: 1_000 });
    const one = client();
    loop.receive(query("Bare.Ask", "q"), one);
    await host.advance(900);
    expect(one.answers).toEqual(["error q 500"]);
    loop.receive(query("Bare.Ask", "q"), one);
    await host.advance(999);
    expect(one.answers).toEqual(["error q 500"]);
    await host.advance(1);
    expect(one.answers).toEqual(["error q 500", "error q 504"]);
  });
});
