import { describe, expect, test } from "#test";
import { BusError } from "../../src/bus/bus-error.ts";
import { PieceError } from "../../src/cells/piece-inputs.ts";
import { HostError } from "../../src/host/host.ts";
import { PathError } from "../../src/message/path.ts";
import { TopicError } from "../../src/message/topic.ts";
import { ComputedError } from "../../src/scheduler/computed-error.ts";
import { SchedulerError } from "../../src/scheduler/scheduler-error.ts";
import { StreamError } from "../../src/scheduler/stream-handler.ts";
import { LabelError } from "../../src/store/label.ts";
import { StoreError } from "../../src/store/store.ts";

const cause = new Error("the disk is full");

describe("errors with a code", () => {
  const errors = [
    {
      name: "BusError",
      class: BusError,
      code: "BUS_NOT_STORED",
      error: new BusError("BUS_NOT_STORED", "words", { cause }),
    },
    {
      name: "StoreError",
      class: StoreError,
      code: "STORE_CORRUPT",
      error: new StoreError("STORE_CORRUPT", "words", { cause }),
    },
    {
      name: "PieceError",
      class: PieceError,
      code: "PATTERN_FAILED",
      error: new PieceError("PATTERN_FAILED", "words", { cause }),
    },
    { name: "HostError", class: HostError, code: "INVALID_DELAY", error: new HostError("INVALID_DELAY", "words") },
    { name: "TopicError", class: TopicError, code: "TOPIC_INVALID", error: new TopicError("TOPIC_INVALID", "words") },
    { name: "LabelError", class: LabelError, code: "LABEL_MISUSE", error: new LabelError("LABEL_MISUSE", "words") },
    {
      name: "StreamError",
      class: StreamError,
      code: "STREAM_MISUSE",
      error: new StreamError("STREAM_MISUSE", "words"),
    },
    {
      name: "ComputedError",
      class: ComputedError,
      code: "COMPUTED_SET",
      error: new ComputedError("COMPUTED_SET", "words"),
    },
    {
      name: "SchedulerError",
      class: SchedulerError,
      code: "SCHEDULER_CLOSED",
      error: new SchedulerError("SCHEDULER_CLOSED", "words"),
    },
  ];

  for (const { name, class: errorClass, code, error } of errors) {
    test(`[M35] a ${name} has its name, its code and its message`, () => {
      expect(error).toBeInstanceOf(Error);
      expect(error).toBeInstanceOf(errorClass);
      expect({ name: error.name, code: error.code, message: error.message }).toEqual({ name, code, message: "words" });
      expect(String(error)).toBe(`${name}: words`);
    });
  }

  test("[M35] an error keeps its cause, and has no empty one", () => {
    expect(new StoreError("STORE_CORRUPT", "words", { cause }).cause).toBe(cause);
    expect("cause" in new StoreError("STORE_CORRUPT", "words")).toBe(false);
  });

  test("[M35] an error class may build its message itself", () => {
    const error = new PathError("PATH_NO_PARENT", ["a", "b"], "there is no parent");
    expect(error).toBeInstanceOf(PathError);
    expect({ name: error.name, code: error.code, message: error.message }).toEqual({
      name: "PathError",
      code: "PATH_NO_PARENT",
      message: 'cannot write at "a" / "b": there is no parent',
    });
  });
});
