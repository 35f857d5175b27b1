/**
 * Declared consumers in memory, and the leases under which they run. The version rises with every declaration and
 * removal. SPEC: S150-S154.
 */
import { CONSUMERS_MAX } from "../../limits.ts";
import {
  type Consumer,
  type ConsumerDeclaration,
  consumerKey,
  consumerOf,
  type DeclaredConsumer,
} from "../consumer.ts";
import { tooManyConsumers } from "../request-check.ts";
import type { LeaseTable } from "./lease-table.ts";

export class ConsumerRows {
  readonly #leases: LeaseTable;
  /** Declaration times, by key. */
  readonly #declaredAtMs = new Map<string, number>();
  version = 0;

  constructor(leases: LeaseTable) {
    this.#leases = leases;
  }

  declare({ consumers, running }: ConsumerDeclaration, nowMs: number): void {
    const fresh = new Set(consumers.map(consumerKey).filter((key) => !this.#declaredAtMs.has(key)));
    if (this.#declaredAtMs.size + fresh.size > CONSUMERS_MAX) throw tooManyConsumers();
    for (const key of fresh) this.#declaredAtMs.set(key, nowMs);
    if (fresh.size > 0) this.version++;
    if (running !== undefined) this.#leases.run(running.lease, running.keys);
  }

  has(key: string): boolean {
    return this.#declaredAtMs.has(key);
  }

  remove(key: string): void {
    if (this.#declaredAtMs.delete(key)) this.version++;
  }

  /** Live leases under which it runs. */
  leasesOf(consumer: Consumer, nowMs: number): number[] {
    return this.#leases.running(consumerKey(consumer), nowMs);
  }

  list(waiting: (key: string) => number, nowMs: number): DeclaredConsumer[] {
    return [...this.#declaredAtMs].sort(byKey).map(([key, declaredAtMs]) => {
      const consumer = consumerOf(key);
      return { ...consumer, declaredAtMs, leases: this.leasesOf(consumer, nowMs), waiting: waiting(key) };
    });
  }
}

function byKey([a]: [string, number], [b]: [string, number]): number {
  return a < b ? -1 : 1;
}
