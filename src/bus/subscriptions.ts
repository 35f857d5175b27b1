/**
 * All subscriptions of a bus, in the order they were made, and which of them an event's topic reaches. SPEC: J42-J44.
 *
 * The answer for a topic is remembered until a subscription comes or goes, because a busy bus asks it for every event.
 */
import { TOPICS_REMEMBERED_MAX } from "../limits.ts";
import { consumerKey, wantsTopic } from "../store/consumer.ts";
import type { Subscription, SubscriptionView } from "./subscription.ts";

/** One handling of an event: a subscription, and the name under which the journal knows its share. */
export interface Step {
  readonly subscription: Subscription;
  readonly subscriber: string;
}

export class Subscriptions {
  #all: Subscription[] = [];
  readonly #stepsByTopic = new Map<string, readonly Step[]>();
  /** How many of them want their events in order. */
  #serial = 0;
  /** Rises with every change. */
  revision = 1;
  #consumerKeys: readonly string[] = [];

  get hasSerial(): boolean {
    return this.#serial > 0;
  }

  /** Keys of the consumers that run here: those of durable subscriptions. */
  get consumerKeys(): readonly string[] {
    return this.#consumerKeys;
  }

  /** In the order of subscribing. */
  views(waitingAt: (subscription: Subscription) => number): SubscriptionView[] {
    return this.#all.map((one) => one.view(waitingAt(one)));
  }

  add(subscription: Subscription): void {
    this.#all.push(subscription);
    this.#changed();
  }

  /** Removes the subscriptions of that subscriber under that topic or pattern; returns their number. */
  remove(pattern: string, subscriberId: string): number {
    const isMeant = (one: Subscription) => one.pattern === pattern && one.subscriberId === subscriberId;
    const removed = this.#all.filter(isMeant);
    for (const subscription of removed) subscription.active = false;
    this.#all = this.#all.filter((one) => !isMeant(one));
    this.#changed();
    return removed.length;
  }

  /** The steps for an event of the topic, in the order of subscribing. */
  stepsFor(topic: string): readonly Step[] {
    const known = this.#stepsByTopic.get(topic);
    if (known !== undefined) return known;
    if (this.#stepsByTopic.size >= TOPICS_REMEMBERED_MAX) this.#stepsByTopic.clear();
    const steps = this.#match(topic);
    this.#stepsByTopic.set(topic, steps);
    return steps;
  }

  #match(topic: string): Step[] {
    const uses = new Map<string, number>();
    return this.#all
      .filter(({ consumer }) => wantsTopic(consumer, topic))
      .map((subscription) => {
        const use = (uses.get(subscription.name) ?? 0) + 1;
        uses.set(subscription.name, use);
        // One subscriber twice on one topic: both run, and each has a share of its own.
        return { subscription, subscriber: use === 1 ? subscription.name : `${subscription.name} ${use}` };
      });
  }

  #changed(): void {
    this.#stepsByTopic.clear();
    this.revision++;
    this.#consumerKeys = [...new Set(this.#all.filter((one) => one.durable).map((one) => consumerKey(one.consumer)))];
    this.#serial = this.#all.filter((one) => one.serialBy !== undefined).length;
  }
}
