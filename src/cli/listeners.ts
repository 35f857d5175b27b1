/**
 * The current subscribers of an event: capabilities by its type, and direct subscriptions. Unknown while no kernel
 * runs.
 */
import type { GraphView } from "../kernel/inspect-capability.ts";
import { matchesTopic } from "../message/topic-pattern.ts";
import { askIfRunning } from "./connection.ts";
import type { JournalLine } from "./journal-lines.ts";
import type { VerbCall } from "./verb.ts";

export class Listeners {
  /** Whether a running kernel was asked. */
  readonly areKnown: boolean;
  readonly #capabilities: GraphView["capabilities"];
  readonly #subscribers: GraphView["subscribers"];

  static async of(call: VerbCall): Promise<Listeners> {
    return new Listeners(await askIfRunning<GraphView>(call, "Kernel.Graph"));
  }

  private constructor(graph: GraphView | undefined) {
    this.areKnown = graph !== undefined;
    this.#capabilities = graph?.capabilities ?? [];
    this.#subscribers = graph?.subscribers ?? [];
  }

  /** Their names, each once. */
  names({ message, topic }: JournalLine): string[] {
    const type = message?.type ?? topic;
    const capabilities = this.#capabilities.filter(({ subscribes }) => subscribes.includes(type));
    const others = this.#subscribers.filter(({ pattern }) => matchesTopic(pattern, topic));
    return [...new Set([...capabilities, ...others].map(({ name }) => name))];
  }

  /** Names of the event's possible deliveries in the journal. */
  subscribers({ topic, deliveries }: JournalLine): string[] {
    const others = this.#subscribers.filter(({ pattern }) => matchesTopic(pattern, topic));
    return [...new Set([...deliveries, ...others].map(({ subscriber }) => subscriber))];
  }
}
