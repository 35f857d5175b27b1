/**
 * Capabilities with journaled commands of each kind, and a count of their effects; for simulations of whole kernels.
 */
import type { Host } from "../../src/host/host.ts";
import type { SimulatedHost } from "../../src/host/simulated-host.ts";
import type { KernelParts } from "../../src/kernel/kernel-options.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Message } from "../../src/message/envelope.ts";
import { Failure } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import type { Tx } from "../../src/work/tx.ts";

/**
 * Effects that are one commit, with all commands journaled or only those without a requester; repeatable effects;
 * effects that must not repeat.
 */
export const TYPES = ["Ledger.Add", "Note.Add", "Bell.Ring", "Siren.Ring"] as const;
export type Type = (typeof TYPES)[number];

/** The command of a type that another one leads to: always the same. */
type Consequence = (type: Type, cause: Message) => Message;

export class KeptWorkers {
  /** How often a handler of a command has begun, and ended well. */
  readonly begun = new Map<string, number>();
  readonly ended = new Map<string, number>();
  readonly #world: SimulatedHost;
  readonly #consequence: Consequence;

  constructor(world: SimulatedHost, consequence: Consequence) {
    this.#world = world;
    this.#consequence = consequence;
  }

  capabilities({ space, host }: KernelParts) {
    const ring = (data: Json, { metadata: { id } }: Message) => this.#ring(data, id, host);
    const add = async (data: Json, tx: Tx, { metadata: { id } }: Message) => {
      const applied = space.cell<number>(`applied/${id}`);
      const times = tx.get(applied) ?? 0;
      if (this.#below(3) === 0) await this.#pause(host, 200);
      if (this.#below(20) === 0) throw new Failure(503, "no time");
      tx.set(applied, times + 1);
      return data;
    };
    return {
      ledger: transactional({
        ...{ space, description: "adds up", durable: "before" },
        commands: { "Ledger.Add": { handle: add } },
      }),
      notes: transactional({ space, description: "adds up too", commands: { "Note.Add": { handle: add } } }),
      bells: capability({
        ...{ description: "rings, twice if need be", durable: "before", idempotent: true },
        sends: { "Siren.Ring": "command", "Note.Add": "command" },
        commands: {
          "Bell.Ring": {
            handle: async (data, { send }, message) => {
              const type = this.#below(2) === 0 ? "Siren.Ring" : "Note.Add";
              if (this.#below(3) === 0) send(this.#consequence(type, message));
              return ring(data, message);
            },
          },
        },
      }),
      sirens: capability({
        ...{ description: "rings, and never twice", durable: "before" },
        commands: { "Siren.Ring": { handle: (data, _, message) => ring(data, message) } },
      }),
    };
  }

  async #ring(data: Json, id: string, host: Host): Promise<Json> {
    // Before any effect.
    if (this.#below(20) === 0) throw new Failure(503, "no time");
    this.begun.set(id, (this.begun.get(id) ?? 0) + 1);
    await this.#pause(host, 300);
    this.ended.set(id, (this.ended.get(id) ?? 0) + 1);
    return data;
  }

  #pause(host: Host, mostMs: number): Promise<void> {
    return new Promise((resolve) => host.timer(this.#below(mostMs), resolve));
  }

  #below(bound: number): number {
    return Math.floor(this.#world.random() * bound);
  }
}
