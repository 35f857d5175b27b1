import { describe, expect, test } from "#test";
import { ERROR_MEANINGS, errorData, Failure, failureFrom, fromError, isFailure } from "../../src/message/error-data.ts";
import { isReason, KERNEL_REASONS, reasonOf } from "../../src/message/reasons.ts";

describe("a failure", () => {
  test("[M41] has code, reason, data, retryable and cause", () => {
    const cause = new Error("shelf empty");
    const failure = new Failure(409, "sold out", { reason: "SOLD_OUT", data: { left: 0 }, cause });
    expect({ ...failure }).toEqual({
      ...{ name: "Failure", code: 409, reason: "SOLD_OUT", data: { left: 0 }, retryable: false, extras: {} },
    });
    expect(failure.cause).toBe(cause);
    expect("cause" in new Failure(409, "sold out")).toBe(false);
  });

  test("[M41] keeps its own copy of the data", () => {
    const data = { left: [1] };
    const failure = new Failure(409, "sold out", { data });
    data.left.push(2);
    expect(failure.data).toEqual({ left: [1] });
  });

  test("[M41] a wrong code, reason or data throws with the remedy", () => {
    expect(() => new Failure(200, "fine")).toThrow("a code from 400 to 599, got 200");
    for (const reason of ["sold out", "sold_out", "", "_A", "A__B", "A".repeat(65)])
      expect(() => new Failure(409, "no", { reason })).toThrow("is a word like SOLD_OUT");
    expect(() => new Failure(409, "no", { data: { at: new Date(0) } })).toThrow(
      "the data of a failure is JSON: data.at",
    );
    expect(() => new Failure(409, "no", { data: "x".repeat(70_000) })).toThrow("a failure carries at most 65536");
  });

  test("[M42] every code of the kernel has a reason, and every reason the form of one", () => {
    for (const code of Object.keys(ERROR_MEANINGS).map(Number)) {
      expect(KERNEL_REASONS[reasonOf(code) as keyof typeof KERNEL_REASONS]).toBe(code);
    }
    expect(Object.keys(KERNEL_REASONS).filter((reason) => !isReason(reason))).toEqual([]);
  });

  test("[M42] a failure that names no reason has that of its code", () => {
    const reasons = [404, 422, 503, 402, 507].map((code) => new Failure(code, "no").reason);
    expect(reasons).toEqual(["NOT_FOUND", "INVALID", "UNAVAILABLE", "REFUSED", "FAILED"]);
  });

  test("[M42] 429, 502, 503 and 504 are retryable unless the failure says otherwise", () => {
    const codes = [400, 404, 409, 429, 500, 502, 503, 504];
    expect(codes.filter((code) => new Failure(code, "no").retryable)).toEqual([429, 502, 503, 504]);
    expect(new Failure(503, "closed", { retryable: false }).retryable).toBe(false);
    expect(new Failure(409, "locked", { retryable: true }).retryable).toBe(true);
  });

  test("[M45] isFailure tells failures from other errors, and one reason from another", () => {
    const failure = new Failure(409, "no", { reason: "SOLD_OUT" });
    expect(isFailure(failure)).toBe(true);
    expect(isFailure(failure, "SOLD_OUT")).toBe(true);
    expect(isFailure(failure, "CONFLICT")).toBe(false);
    for (const other of [new Error("x"), { reason: "SOLD_OUT", code: 409 }, null, undefined, "SOLD_OUT"])
      expect(isFailure(other)).toBe(false);
    const thrown: unknown = failure;
    if (!isFailure(thrown, "SOLD_OUT")) throw new Error("it is one");
    const reason: "SOLD_OUT" = thrown.reason;
    expect(reason).toBe("SOLD_OUT");
  });
});

describe("error data of a failure", () => {
  test("[M43] every key comes back from the wire", () => {
    const inner = new Failure(404, "no such shelf", { reason: "NO_SHELF", data: 7, cause: new Error("disk") });
    const failure = new Failure(503, "closed", {
      reason: "SHOP_CLOSED",
      data: { until: 9 },
      retryable: false,
      cause: inner,
    });
    const wire = JSON.parse(JSON.stringify(fromError(failure)));
    expect(wire).toEqual({
      ...{ code: 503, message: "closed", reason: "SHOP_CLOSED", data: { until: 9 }, retryable: false },
      cause: {
        ...{ code: 404, message: "no such shelf", reason: "NO_SHELF", data: 7 },
        cause: { code: 500, message: "disk" },
      },
    });
    expect(fromError(failureFrom(wire))).toEqual(wire);
    expect(failureFrom(wire)).toMatchObject({ reason: "SHOP_CLOSED", retryable: false, cause: { reason: "NO_SHELF" } });
  });

  test("[M43] keys that a failure does not name are kept", () => {
    const data = { ...errorData(410, "gone"), firstId: 3, lastId: 9 };
    const failure = failureFrom(data);
    expect(failure.extras).toEqual({ firstId: 3, lastId: 9 });
    expect(fromError(failure)).toEqual(data);
  });

  test("[M14] an object that poses as a failure makes valid data", () => {
    const cyclic: { self?: unknown } = {};
    cyclic.self = cyclic;
    const posing = Object.assign(Object.create({ [Symbol.for("millrace.failure")]: true }), {
      ...{ code: 409, message: "hm", reason: "not a word", data: cyclic, extras: cyclic, retryable: 1 },
    });
    expect(fromError(posing)).toEqual({ code: 409, message: "hm" });
    expect(fromError(Object.assign(posing, { code: "409" }))).toEqual({ code: 500, message: "hm" });
  });
});
