/**
 * Topics: the names under which events are published, and their message types. SPEC: M26, M27.
 *
 *   email.received      Email.Received      two segments: one each side of the dot
 *   system.user.notify  System.UserNotify   the first names the domain, the rest are joined
 *   tick                Topic.Tick          one segment: the domain is Topic
 *   user.signed-up      User.SignedUp       `-` and `_` join words
 *   2fa.sent            N2fa.Sent           a name cannot start with a digit
 *   Email.Received      Email.Received      a message type is a topic and its own type
 *
 * The mapping is not injective, so two topics can have one type; the registry refuses that when topics are wired.
 * Patterns are in `topic-pattern.ts`.
 */

import { TOPIC_LENGTH_MAX } from "../limits.ts";
import { MillraceError } from "./millrace-error.ts";
import { type Problem, show } from "./problem.ts";

/** The codes of `TopicError`. */
export type TopicErrorCode = "TOPIC_INVALID" | "TOPIC_COLLISION" | "TOPIC_PATTERN_INVALID";

/** A topic or a pattern of topics is invalid. */
export class TopicError extends MillraceError<TopicErrorCode> {
  override readonly name = "TopicError";
}

const DOT = 0x2e;
const HYPHEN = 0x2d;
const UNDERSCORE = 0x5f;

/** Why `topic` is invalid; undefined if it is valid. */
export function findTopicProblem(topic: string): Problem | undefined {
  if (topic.length === 0) return { path: "", problem: "a topic must not be empty" };
  if (topic.length > TOPIC_LENGTH_MAX) {
    return { path: "", problem: `a topic has at most ${TOPIC_LENGTH_MAX} characters, got ${topic.length}` };
  }
  let named = false;
  for (let i = 0; i < topic.length; i++) {
    const code = topic.charCodeAt(i);
    if (isAlphanumeric(code)) {
      named = true;
    } else if (code === DOT) {
      if (!named) return emptySegment(topic, i);
      named = false;
    } else if (code !== HYPHEN && code !== UNDERSCORE) {
      return { path: "", problem: `a topic has only letters, digits, "-", "_" and dots: ${show(topic)}, at ${i}` };
    }
  }
  return named ? undefined : emptySegment(topic, topic.length);
}

export function isTopic(topic: string): boolean {
  return findTopicProblem(topic) === undefined;
}

/** The message type of a topic. Throws for an invalid topic. */
export function topicType(topic: string): string {
  const problem = findTopicProblem(topic);
  if (problem !== undefined) throw new TopicError("TOPIC_INVALID", problem.problem);
  const [domain = "", ...rest] = topic.split(".").map(pascalCase);
  return rest.length === 0 ? `Topic.${asName(domain)}` : `${asName(domain)}.${asName(rest.join(""))}`;
}

/** Maps types to topics, for topics with a publisher or subscriber. */
export class TopicRegistry {
  readonly #topicByType = new Map<string, string>();

  /** Registers the topic and returns its type; repeating it has no effect. Throws if another topic has the type. */
  wire(topic: string): string {
    const type = topicType(topic);
    const owner = this.#topicByType.get(type);
    if (owner !== undefined && owner !== topic) {
      throw new TopicError(
        "TOPIC_COLLISION",
        `the topics "${owner}" and "${topic}" are both of type ${type}; rename one of them`,
      );
    }
    this.#topicByType.set(type, topic);
    return type;
  }

  topicOf(type: string): string | undefined {
    return this.#topicByType.get(type);
  }
}

/** The words of a segment, each with a capital, joined. */
function pascalCase(segment: string): string {
  let name = "";
  let wordStart = true;
  for (let i = 0; i < segment.length; i++) {
    const code = segment.charCodeAt(i);
    if (code === HYPHEN || code === UNDERSCORE) {
      wordStart = true;
    } else {
      name += wordStart ? segment.charAt(i).toUpperCase() : segment.charAt(i);
      wordStart = false;
    }
  }
  return name;
}

function asName(name: string): string {
  return name.charCodeAt(0) <= 0x39 ? `N${name}` : name;
}

/** ASCII only, so that upper case is the same in every locale. */
function isAlphanumeric(code: number): boolean {
  const lower = code | 0x20;
  return (lower >= 0x61 && lower <= 0x7a) || (code >= 0x30 && code <= 0x39);
}

function emptySegment(topic: string, end: number): Problem {
  return { path: "", problem: `a topic segment needs a letter or digit: ${show(topic)}, before ${end}` };
}
