/**
 * Topic patterns of subscriptions. SPEC: M28.
 *
 *   email.received   that topic
 *   email.*          one more segment: email.received, not email nor email.a.b
 *   *.received       one segment in its place
 *   email.**         one or more further segments; only as the last segment
 *   *                every topic of one segment;  **  every topic
 *
 * A star stands for whole segments. Matching walks both strings once, without a regular expression or backtracking.
 */

import { TOPIC_LENGTH_MAX } from "../limits.ts";
import { show } from "./problem.ts";
import { isTopic, TopicError } from "./topic.ts";

const DOT = 0x2e;
const STAR = 0x2a;

export function isTopicPattern(pattern: string): boolean {
  if (pattern.length > TOPIC_LENGTH_MAX) return false;
  const segments = pattern.split(".");
  return segments.every((segment, i) => {
    if (segment === "*") return true;
    return segment === "**" ? i === segments.length - 1 : isTopic(segment);
  });
}

/** Throws for an invalid pattern, with a remedy. */
export function checkTopicPattern(pattern: string): void {
  if (isTopicPattern(pattern)) return;
  throw new TopicError(
    "TOPIC_PATTERN_INVALID",
    `${show(pattern)} is not a topic pattern: use a topic in which "*" may stand for one whole segment, and "**" for the rest, at the end`,
  );
}

/** Whether a pattern has stars; one without is matched by equality and can be looked up. */
export function isWildcard(pattern: string): boolean {
  return pattern.includes("*");
}

/** Whether the pattern matches the topic. Both must be valid. */
export function matchesTopic(pattern: string, topic: string): boolean {
  let p = 0;
  let t = 0;
  while (p < pattern.length && t < topic.length) {
    if (pattern.charCodeAt(p) === STAR) {
      if (pattern.charCodeAt(p + 1) === STAR) return true;
      p++;
      while (t < topic.length && topic.charCodeAt(t) !== DOT) t++;
    } else if (pattern.charCodeAt(p) === topic.charCodeAt(t)) {
      p++;
      t++;
    } else {
      return false;
    }
  }
  return p === pattern.length && t === topic.length;
}
