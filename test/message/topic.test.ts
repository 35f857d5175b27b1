import fc from "fast-check";
import { describe, expect, test } from "#test";
import { isMessageType } from "../../src/message/envelope.ts";
import { isTopic, TopicRegistry, topicType } from "../../src/message/topic.ts";
import { checkTopicPattern, isTopicPattern, isWildcard, matchesTopic } from "../../src/message/topic-pattern.ts";
import { type } from "./arbitraries.ts";

const segment = fc
  .string({ unit: fc.constantFrom("a", "b", "Z", "7", "_", "-"), minLength: 1, maxLength: 5 })
  .filter((text) => /[a-zA-Z0-9]/.test(text));
const topic = fc.array(segment, { minLength: 1, maxLength: 5 }).map((segments) => segments.join("."));

describe("topics", () => {
  test("[M54] each topic has its type", () => {
    const types = {
      "email.received": "Email.Received",
      "system.user.notify": "System.UserNotify",
      tick: "Topic.Tick",
      "user.signed-up": "User.SignedUp",
      "user.signed_up": "User.SignedUp",
      "user.loggedIn": "User.LoggedIn",
      "_private.-x-": "Private.X",
      "2fa.sent": "N2fa.Sent",
      "a.1.b": "A.N1B",
      "7": "Topic.N7",
      "Email.Received": "Email.Received",
    };
    for (const [topic, expected] of Object.entries(types)) expect(topicType(topic)).toBe(expected);
  });

  test("[M54] every topic has a valid type, and a type is its own", () => {
    fc.assert(fc.property(topic, (name) => isTopic(name) && isMessageType(topicType(name))));
    fc.assert(fc.property(type, (name) => isTopic(name) && topicType(name) === name));
    expect(isMessageType(topicType("a".repeat(255)))).toBe(true);
  });

  test("[M26] an invalid topic is refused with the reason", () => {
    for (const bad of ["", ".", "a.", ".a", "a..b", "a b", "a.*", "é", "a/b", "-", "a._", "a\n", "a".repeat(256)]) {
      expect(isTopic(bad)).toBe(false);
      expect(() => topicType(bad)).toThrow("a topic");
    }
    expect(isTopic("a".repeat(255))).toBe(true);
    expect(() => topicType("a:b")).toThrow('a topic has only letters, digits, "-", "_" and dots: "a:b", at 1');
  });

  test("[M27] two topics of one type are refused when wired, with both names", () => {
    const registry = new TopicRegistry();
    expect(registry.wire("user.signed-up")).toBe("User.SignedUp");
    expect(registry.wire("user.signed-up")).toBe("User.SignedUp");
    expect(() => registry.wire("user.signed_up")).toThrow(
      'the topics "user.signed-up" and "user.signed_up" are both of type User.SignedUp',
    );
    expect(() => registry.wire("User.SignedUp")).toThrow("both of type");
    expect(registry.topicOf("User.SignedUp")).toBe("user.signed-up");
    expect(registry.topicOf("Other.Type")).toBe(undefined);
  });
});

describe("patterns", () => {
  test("[M28] a star is one segment, a last double star is one or more", () => {
    const cases: [string, string[], string[]][] = [
      ["email.received", ["email.received"], ["email", "email.receive", "email.received.x", "Email.received"]],
      ["email.*", ["email.received", "email.x"], ["email", "email.a.b", "emails.x", "mail.x"]],
      ["*.received", ["email.received"], ["received", "a.b.received", "email.receivedx"]],
      ["a.*.c", ["a.b.c"], ["a.c", "a.b.b.c", "a.b.d", "a.b"]],
      ["email.**", ["email.a", "email.a.b.c"], ["email", "emails.a"]],
      ["a.*.**", ["a.b.c", "a.b.c.d"], ["a.b", "a"]],
      ["*", ["tick"], ["email.received"]],
      ["**", ["tick", "email.received", "a.b.c"], []],
    ];
    for (const [pattern, matching, others] of cases) {
      expect(isTopicPattern(pattern)).toBe(true);
      for (const name of matching) expect([pattern, name, matchesTopic(pattern, name)]).toEqual([pattern, name, true]);
      for (const name of others) expect([pattern, name, matchesTopic(pattern, name)]).toEqual([pattern, name, false]);
    }
  });

  test("[M28] stars within a segment and double stars elsewhere are refused", () => {
    for (const bad of ["", "a*", "*a", "a.b*", "**.a", "a.**.b", "***", "a..*", "a b.*", `${"a".repeat(254)}.*`]) {
      expect(isTopicPattern(bad)).toBe(false);
      expect(() => checkTopicPattern(bad)).toThrow("is not a topic pattern");
    }
    expect(isWildcard("a.*")).toBe(true);
    expect(isWildcard("a.b")).toBe(false);
  });

  test("[M28] pattern matching agrees with a comparison segment by segment", () => {
    const pattern = fc
      .tuple(fc.array(fc.oneof(segment, fc.constant("*")), { maxLength: 4 }), fc.boolean())
      .map(([segments, rest]) => (rest || segments.length === 0 ? [...segments, "**"] : segments));
    /** A topic that is close to the pattern: its own segments, with stars filled in and sometimes a few more. */
    const pair = pattern.chain((parts) =>
      fc
        .tuple(
          fc.array(segment, { minLength: parts.length, maxLength: parts.length }),
          fc.array(segment, { maxLength: 2 }),
        )
        .map(([fill, more]) => ({
          parts,
          segments: [...parts.map((part, i) => (part.startsWith("*") ? fill[i]! : part)), ...more],
        })),
    );
    fc.assert(
      fc.property(pair, ({ parts, segments }) => {
        const open = parts.at(-1) === "**";
        const fixed = open ? parts.slice(0, -1) : parts;
        const expected =
          (open ? segments.length > fixed.length : segments.length === fixed.length) &&
          fixed.every((part, i) => part === "*" || part === segments[i]);
        expect(matchesTopic(parts.join("."), segments.join("."))).toBe(expected);
      }),
      { numRuns: 1_000 },
    );
  });
});
