/**
 * Topics that manifests declare, by message type. A capability knows events by their type, `Email.Received`; an
 * extension publishes them as
 * `email.received`. Through this map both mean the same event. Two topics of one type are refused. SPEC: X25.
 */
import { TopicRegistry } from "../message/topic.ts";
import { isWildcard } from "../message/topic-pattern.ts";
import type { Manifest } from "./manifest.ts";
import { SYSTEM_TOPICS } from "./manifest.ts";

export class DeclaredTopics {
  readonly #registry = new TopicRegistry();

  constructor() {
    for (const topic of SYSTEM_TOPICS) this.#registry.wire(topic);
  }

  /** Throws `TopicError` for a topic whose type belongs to another topic. */
  add({ publishes, subscribes }: Manifest): void {
    for (const { topic } of [...publishes, ...subscribes]) if (!isWildcard(topic)) this.#registry.wire(topic);
  }

  /** The topic of events of that type; the type itself where none is declared. */
  topicOf(type: string): string {
    return this.#registry.topicOf(type) ?? type;
  }
}
