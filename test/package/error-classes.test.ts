import { describe, expect, test } from "vitest";
import { BusError } from "../../src/bus/bus-error.ts";
import * as bus from "../../src/bus/index.ts";
import * as client from "../../src/client/index.ts";
import * as extensions from "../../src/extensions/index.ts";
import * as index from "../../src/index.ts";
import * as kernel from "../../src/kernel/index.ts";
import * as loop from "../../src/loop/index.ts";
import { Failure } from "../../src/message/error-data.ts";
import * as message from "../../src/message/index.ts";
import { MillraceError } from "../../src/message/millrace-error.ts";
import { TopicError } from "../../src/message/topic.ts";
import * as signals from "../../src/signals.ts";
import * as store from "../../src/store/index.ts";
import * as sqlite from "../../src/store/sqlite/index.ts";
import * as testing from "../../src/testing.ts";

/** The module once more, as a second copy of the package has it. */
async function secondCopy<T>(file: string): Promise<T> {
  return import(/* @vite-ignore */ new URL(`../../src/${file}?copy`, import.meta.url).href) as Promise<T>;
}

describe("errors of the package", () => {
  test("[M40] every exported error class but Failure extends MillraceError", () => {
    const exported = [bus, client, extensions, index, kernel, loop, message, signals, sqlite, store, testing].flatMap(
      (entry) => Object.values(entry),
    );
    const classes = exported.filter(
      (value): value is new () => Error => typeof value === "function" && value.prototype instanceof Error,
    );
    expect(classes.length).toBeGreaterThan(20);
    const strangers = classes.filter((one) => !isA(one, MillraceError) && !isA(one, Failure));
    expect(strangers.map(({ name }) => name)).toEqual([]);
  });

  test("[M40] instanceof holds for instances of another copy of the package", async () => {
    const copy = await secondCopy<typeof import("../../src/message/error-data.ts")>("message/error-data.ts");
    expect(copy.Failure).not.toBe(Failure);
    expect(new copy.Failure(409, "no")).toBeInstanceOf(Failure);
    expect(new Failure(409, "no")).toBeInstanceOf(copy.Failure);
    expect(copy.isFailure(new Failure(409, "no", { reason: "SOLD_OUT" }), "SOLD_OUT")).toBe(true);
    const base = await secondCopy<typeof import("../../src/message/millrace-error.ts")>("message/millrace-error.ts");
    expect(base.MillraceError).not.toBe(MillraceError);
    expect(new BusError("BUS_MISUSE", "no")).toBeInstanceOf(base.MillraceError);
  });

  test("[M40] subclasses and the two bases are told apart", () => {
    class Refund extends Failure {}
    const error = new BusError("BUS_MISUSE", "no");
    expect(error).not.toBeInstanceOf(TopicError);
    expect(error).not.toBeInstanceOf(Failure);
    expect(new Failure(409, "no")).not.toBeInstanceOf(MillraceError);
    expect(new Failure(409, "no")).not.toBeInstanceOf(Refund);
    expect(new Refund(409, "no")).toBeInstanceOf(Failure);
    for (const other of [new Error("x"), null, undefined, "x", {}]) expect(other instanceof MillraceError).toBe(false);
  });
});

function isA(type: { readonly prototype: object }, base: { readonly prototype: object }): boolean {
  return type === base || Object.prototype.isPrototypeOf.call(base.prototype, type.prototype);
}
