/**
 * Consumers: which subscribers receive the events of which topics (a consumer group of one subscriber id). A consumer
 * stays declared until it is removed, whether a process runs it or not. An event is settled only when every declared
 * consumer of its topic has handled it. States and reasons: `docs/decisions/0022-consumers.md`. SPEC: S150-S154.
 */
import { isWildcard, matchesTopic } from "../message/topic-pattern.ts";

/** A declared subscriber, which is owed the events of its topics. */
export interface Consumer {
  /** The subscriber's id. */
  readonly name: string;
  /** The topic, or the pattern of topics. */
  readonly pattern: string;
}

/** A consumer, the processes that run it, and the events that wait for it. */
export interface DeclaredConsumer extends Consumer {
  readonly declaredAtMs: number;
  /** Live leases under which it runs. */
  readonly leases: readonly number[];
  /** Events that wait for it. */
  readonly waiting: number;
}

export interface ConsumerTable {
  /** Rises with every declaration or removal. */
  readonly version: number;
  /** Sorted by name and pattern. */
  readonly consumers: readonly DeclaredConsumer[];
}

export interface ConsumerDeclaration {
  readonly consumers: readonly Consumer[];
  /** The consumers that run under a lease; replaces the earlier set. */
  readonly running?: { readonly lease: number; readonly keys: readonly string[] };
}

export interface ConsumerRemoval extends Consumer {
  /** Rows changed in one step. */
  readonly limit: number;
  /** A lease that does not count because its holder no longer runs the consumer. */
  readonly exceptLease?: number | undefined;
}

/**
 * `partly`: more events wait for it than one step takes; call again. `running`: a live lease runs it; no change was
 * made.
 */
export type RemovalResult = "removed" | "partly" | "running" | "unknown";

/** Names a consumer in claims and deliveries. Subscriber ids and topics have no blanks, so no two keys are equal. */
export function consumerKey({ name, pattern }: Consumer): string {
  return `${name} ${pattern}`;
}

export function consumerOf(key: string): Consumer {
  const at = key.indexOf(" ");
  return { name: key.slice(0, at), pattern: key.slice(at + 1) };
}

export function wantsTopic({ pattern }: Consumer, topic: string): boolean {
  return isWildcard(pattern) ? matchesTopic(pattern, topic) : pattern === topic;
}

/** The name of a consumer's delivery of an event. The topic is the event's, so the name includes only a pattern. */
export function deliveryName({ name, pattern }: Consumer): string {
  return isWildcard(pattern) ? `${name} ${pattern}` : name;
}
