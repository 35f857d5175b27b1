/**
 * The receivers of a topic: the subscriptions that handle it here, and the declared consumers that do not run here.
 * Answers are remembered per topic until a subscription or the table of consumers changes. SPEC: J42, J98.
 */
import { TOPICS_REMEMBERED_MAX } from "../limits.ts";
import { type Consumer, consumerKey, deliveryName, wantsTopic } from "../store/consumer.ts";
import type { Consumers } from "./consumers.ts";
import type { EventRun, Match, Missing } from "./event-run.ts";
import type { Subscriptions } from "./subscriptions.ts";

export class TopicMatches {
  readonly #subscriptions: Subscriptions;
  readonly #consumers: Consumers;
  readonly #byTopic = new Map<string, Match>();
  /** Of both, as of which the answers are. */
  #subscriptionsAt = 0;
  #consumersAt = 0;
  #missing: readonly Consumer[] = [];

  constructor(parts: { subscriptions: Subscriptions; consumers: Consumers }) {
    this.#subscriptions = parts.subscriptions;
    this.#consumers = parts.consumers;
  }

  for(topic: string): Match {
    const { revision } = this.#subscriptions;
    if (revision !== this.#subscriptionsAt || this.#consumers.revision !== this.#consumersAt) this.#forget();
    const known = this.#byTopic.get(topic);
    if (known !== undefined) return known;
    if (this.#byTopic.size >= TOPICS_REMEMBERED_MAX) this.#byTopic.clear();
    const missing = this.#missing.filter((one) => wantsTopic(one, topic)).map(missingOf);
    const match = { steps: this.#subscriptions.stepsFor(topic), missing, version: this.#consumers.version };
    this.#byTopic.set(topic, match);
    return match;
  }

  /** Reads the consumer table again for events that were decided by an old version of it. */
  async decideAnew(runs: readonly EventRun[]): Promise<void> {
    await this.#consumers.refresh();
    for (const run of runs) run.decideAnew(this.for(run.topic), (key) => this.#consumers.isDeclared(key));
  }

  #forget(): void {
    this.#subscriptionsAt = this.#subscriptions.revision;
    this.#consumersAt = this.#consumers.revision;
    this.#byTopic.clear();
    this.#missing = this.#consumers.version === undefined ? [] : this.#consumers.missing();
  }
}

function missingOf(consumer: Consumer): Missing {
  return { subscriber: deliveryName(consumer), awaits: consumerKey(consumer) };
}
