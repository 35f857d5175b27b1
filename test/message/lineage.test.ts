import { describe, expect, test } from "#test";
import { checkMessage } from "../../src/message/envelope.ts";
import {
  causedBy,
  commandMessage,
  error,
  eventMessage,
  type Mint,
  queryMessage,
  reply,
} from "../../src/message/lineage.ts";

/** Ids m1, m2, ... and a clock that moves by one with each message. */
function setup(): Mint {
  let ids = 0;
  let time = 1_000;
  return { id: () => `m${++ids}`, now: () => ++time };
}

describe("making messages", () => {
  test("[M15] command, query and event take id and timestamp from the mint", () => {
    const mint = setup();
    expect(commandMessage(mint, "A.B", { x: 1 })).toEqual({
      kind: "command",
      type: "A.B",
      data: { x: 1 },
      metadata: { id: "m1", timestamp: 1_001 },
    });
    expect(queryMessage(mint, "A.B", null).kind).toBe("query");
    expect(eventMessage(mint, "A.B", [], { correlation: "c" }).metadata).toEqual({
      id: "m3",
      timestamp: 1_003,
      correlation: "c",
    });
  });

  test("[M15] the mint's id and timestamp cannot be overridden", () => {
    const forged: object & { correlation: string } = Object.assign(
      { correlation: "c" },
      { id: "forged", timestamp: 1 },
    );
    expect(commandMessage(setup(), "A.B", 1, forged).metadata).toEqual({
      correlation: "c",
      id: "m1",
      timestamp: 1_001,
    });
  });

  test("[M15] reply and error take the request's type, and its id as causation", () => {
    const mint = setup();
    const request = queryMessage(mint, "Memory.Get", { key: "/a" }, { correlation: "c" });
    const answers = [reply(mint, request, { value: 1 }), error(mint, request, { code: 404, message: "absent" })];
    for (const answer of answers) {
      expect(answer.type).toBe("Memory.Get");
      expect(answer.metadata.causation).toBe("m1");
      expect(answer.metadata.correlation).toBe("c");
      expect(checkMessage(answer).kind).toBe("accepted");
    }
    expect(answers.map(({ kind }) => kind)).toEqual(["reply", "error"]);
  });

  test("[M15] an invalid type throws an error that explains the form", () => {
    expect(() => commandMessage(setup(), "memory.get", 1)).toThrow(
      'like Memory.Get, of at most 261 characters; got "memory.get"',
    );
  });

  test("[M16] a consequence inherits only causation, correlation, trace context and label", () => {
    const mint = setup();
    const parent = commandMessage(mint, "A.B", 1, {
      causation: "grandparent",
      correlation: "c",
      traceparent: "00-1-2-01",
      tracestate: "k=v",
      label: ["hr"],
      tenant: "t",
    });
    expect(eventMessage(mint, "C.D", 2, causedBy(parent)).metadata).toEqual({
      id: "m2",
      timestamp: 1_002,
      causation: "m1",
      correlation: "c",
      traceparent: "00-1-2-01",
      tracestate: "k=v",
      label: ["hr"],
    });
    expect(causedBy(commandMessage(mint, "A.B", 1))).toStrictEqual({ causation: "m3" });
  });

  test("[M16] an answer inherits each of these fields independently", () => {
    const mint = setup();
    for (const carried of [
      { correlation: "c" },
      { traceparent: "00-1-2-01" },
      { tracestate: "k=v" },
      { label: ["hr"] },
    ]) {
      const request = commandMessage(mint, "A.B", 1, carried);
      const { id, timestamp, ...lineage } = reply(mint, request, 2).metadata;
      expect(lineage).toEqual({ causation: request.metadata.id, ...carried });
    }
  });
});
