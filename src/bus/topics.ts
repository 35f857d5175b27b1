/**
 * Topics as the bus knows them: their message types, and the refusal of two topics that would share one. SPEC: J41.
 *
 * A topic is wired by its first subscription or its first event. The number of wired topics is bounded, because topics
 * can be made at run time; beyond it a new topic is still checked against the wired ones.
 */
import { TOPICS_REMEMBERED_MAX } from "../limits.ts";
import { TopicError, TopicRegistry, topicType } from "../message/topic.ts";

export class Topics {
  readonly #registry = new TopicRegistry();
  readonly #types = new Map<string, string>();

  /** The type of a topic. Throws for an invalid topic, and for one whose type belongs to another topic. */
  wire(topic: string): string {
    const known = this.#types.get(topic);
    if (known !== undefined) return known;
    if (this.#types.size >= TOPICS_REMEMBERED_MAX) return this.#checked(topic);
    const type = this.#registry.wire(topic);
    this.#types.set(topic, type);
    return type;
  }

  #checked(topic: string): string {
    const type = topicType(topic);
    const owner = this.#registry.topicOf(type);
    if (owner === undefined || owner === topic) return type;
    throw new TopicError(
      "TOPIC_COLLISION",
      `the topics "${owner}" and "${topic}" are both of type ${type}; rename one of them`,
    );
  }
}
