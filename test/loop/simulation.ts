/**
 * A world from a seed: clients that ask and vanish, actors that take random time, ask each other, fail and crash,
 * timers, small limits. Every request is checked from outside against a few invariants.
 */
import type { SimulatedHost } from "../../src/host/simulated-host.ts";
import { capability } from "../../src/loop/define-capability.ts";
import type { CapabilityContext } from "../../src/loop/mailbox-actor.ts";
import { timerCapability } from "../../src/loop/timer.ts";
import type { Message } from "../../src/message/envelope.ts";
import { Failure } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { BareActor, bare, Client, command, message, query, type Setup, setup } from "./loop-setup.ts";

/** Rare situations of a run; some seed must reach each. */
export interface Sightings {
  asked: number;
  answered: number;
  orphans: number;
  refused: number;
  timedOut: number;
  crashes: number;
  disconnects: number;
  fired: number;
}

const WORKERS = 3;

export class LoopSimulation {
  readonly sightings: Sightings = {
    asked: 0,
    answered: 0,
    orphans: 0,
    refused: 0,
    timedOut: 0,
    crashes: 0,
    disconnects: 0,
    fired: 0,
  };
  readonly #host: SimulatedHost;
  #made!: Setup;
  /** The client of each unanswered request; ids may be used again afterwards. */
  readonly #open = new Map<string, Client>();
  readonly #clients = new Set<Client>();
  /** For each worker, the order in which it was given messages and the order in which it handled them. */
  readonly #given = new Map<string, string[]>();
  readonly #handled = new Map<string, string[]>();
  #crashing: BareActor | undefined;
  /** Actors that ask each other in a circle may wait forever; a timeout ends that. */
  #circles = false;
  #next = 0;

  constructor(host: SimulatedHost) {
    this.#host = host;
  }

  async run(rounds: number): Promise<void> {
    const mailboxMax = 3 + this.#below(10);
    const timeout = this.#below(3) === 0 ? {} : { requestTimeoutMs: 50 + this.#below(200) };
    this.#circles = "requestTimeoutMs" in timeout;
    this.#made = await setup(this.#capabilities(), { host: this.#host, mailboxMax, ...timeout });
    for (let round = 0; round < rounds; round++) {
      this.#disturb();
      await this.#host.advance(this.#below(30));
      this.#made.loop.pending.checkInvariants();
      this.#made.host.note(`${this.#made.loop.liveness.turns}`);
    }
    await this.#host.advance(120_000);
    this.#check();
  }

  #capabilities() {
    const workers = Array.from({ length: WORKERS }, (_, n) => [`w${n}`, this.#worker(n)] as const);
    const crashing = bare(
      () => {
        this.#crashing = new BareActor();
        return this.#crashing;
      },
      { takes: [["query", "Crash.Ask"]] },
    );
    const leaf = capability({ description: "leaf", queries: { "Leaf.Ask": { handle: () => "leaf" } } });
    return { ...Object.fromEntries(workers), leaf, crashing, timer: timerCapability() };
  }

  #worker(n: number) {
    const name = `w${n}`;
    return capability({
      description: name,
      sends: { [`W${(n + 1) % WORKERS}.Leaf`]: "query", "Leaf.Ask": "query" },
      queries: {
        [`W${n}.Ask`]: {
          handle: (data: Json, context: CapabilityContext, given: Message) =>
            this.#handle(name, data, given, () =>
              context.query(this.#circles ? `W${(n + 1) % WORKERS}.Leaf` : "Leaf.Ask", null),
            ),
        },
        [`W${n}.Leaf`]: { handle: () => "leaf" },
      },
      on: { "Timer.Fired": () => void this.sightings.fired++ },
    });
  }

  async #handle(name: string, data: Json, given: Message, ask: () => Promise<Json>): Promise<Json> {
    this.#note(this.#handled, name, given.metadata.id);
    await this.#pause(this.#below(60));
    const what = this.#below(10);
    if (what === 0) throw new Failure(422, "on purpose");
    if (what === 1) throw new Error("on purpose");
    if (what === 2) await ask().catch(() => undefined);
    return data;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#host.timer(ms, resolve);
    });
  }

  #disturb(): void {
    const what = this.#below(20);
    const client = this.#anyClient();
    if (what < 2 || !client) this.#connect();
    else if (what < 12) for (let n = this.#below(6); n >= 0; n--) this.#ask(client);
    else if (what < 14) this.#disconnect(client);
    else if (what < 16) this.#setTimer(client);
    else if (what < 17) this.#forge(client);
    else if (what < 18) this.#repeat(client);
    else this.#crash();
  }

  #connect(): void {
    const client = new Client(`c${++this.#next}`);
    const deliver = client.deliver.bind(client);
    client.deliver = (answer) => {
      this.#answered(client, answer);
      deliver(answer);
    };
    this.#clients.add(client);
  }

  #ask(client: Client): void {
    const id = `q${++this.#next}`;
    const worker = this.#below(WORKERS + 1);
    const type = worker === WORKERS ? (this.#below(4) === 0 ? "Nobody.Home" : "Crash.Ask") : `W${worker}.Ask`;
    this.#open.set(id, client);
    this.sightings.asked++;
    if (worker < WORKERS) this.#note(this.#given, `w${worker}`, id);
    this.#made.loop.receive(query(type, id, client.id), client);
  }

  #setTimer(client: Client): void {
    const id = `t${++this.#next}`;
    this.#open.set(id, client);
    this.sightings.asked++;
    const [target] = this.#open.keys();
    const template =
      this.#below(2) === 0
        ? { kind: "event", type: "A.Told", data: null }
        : { kind: "command", type: "Sys.RequestTimeout", data: { requestId: target ?? "none" } };
    this.#made.loop.receive(command("Timer.Set", id, { delayMs: this.#below(100), message: template }), client);
  }

  /** An answer of a client, or of an actor that was not asked, to another's request; it must have no receiver. */
  #forge(client: Client): void {
    const [id] = [...this.#open.keys()].filter((open) => this.#made.loop.pending.get(open)?.type !== "Crash.Ask");
    if (this.#below(2) === 0) return this.#crashing?.reply(query("Crash.Ask", id ?? "none"), "forged");
    this.#made.loop.receive(
      message("reply", "W0.Ask", `f${++this.#next}`, "forged", { causation: id ?? "none" }),
      client,
    );
  }

  /** The same id again while it is open: 409 to the sender, which is not an answer to the original. */
  #repeat(client: Client): void {
    const [id] = [...this.#open.keys()].filter((open) => this.#made.loop.pending.has(open));
    if (id === undefined) return;
    const before = client.received.length;
    this.#expected409.add(`${client.id} ${id}`);
    this.#made.loop.receive(query("W0.Ask", id, "again"), client);
    if (client.received.length !== before) throw new Error("a request was answered outside of a turn");
  }

  readonly #expected409 = new Set<string>();

  #disconnect(client: Client): void {
    this.#clients.delete(client);
    this.sightings.disconnects++;
    this.#made.loop.disconnect(client);
    for (const [id, asker] of this.#open) if (asker === client) this.#open.delete(id);
    client.deliver = (answer) => {
      // Messages that are in a lane when it closes are refused; an answer of an actor would be wrong.
      if (answer.kind === "reply") throw new Error(`${client.id} is gone and was answered: ${JSON.stringify(answer)}`);
    };
  }

  #crash(): void {
    const actor = this.#crashing;
    if (!actor) return;
    if (this.#below(2) === 0) for (const given of actor.posted.splice(0)) actor.reply(given, given.data);
    else {
      this.sightings.crashes++;
      actor.dispatch({ type: "error", message: "boom" });
    }
  }

  #answered(client: Client, answer: Message): void {
    const id = answer.metadata.causation ?? "";
    const code = answer.kind === "error" ? (answer.data as { code: number }).code : 0;
    if (code === 409) {
      if (!this.#expected409.delete(`${client.id} ${id}`)) throw new Error(`409 for ${id} came from nowhere`);
      return;
    }
    this.#expectedNoMore(client, id);
    const asker = this.#open.get(id);
    if (asker !== client) throw new Error(`${client.id} got an answer for ${id}, which ${asker?.id ?? "nobody"} asked`);
    if (answer.kind === "reply" && id.startsWith("q") && answer.data !== client.id)
      throw new Error(`${id} got another's data`);
    this.#open.delete(id);
    this.sightings.answered++;
    if (code === 504) this.sightings.timedOut++;
    else if (code !== 0) this.sightings.refused++;
  }

  /** A repeated id that is handled after the original was answered is a request of its own. */
  #expectedNoMore(client: Client, id: string): void {
    if (!this.#open.has(id) && this.#expected409.delete(`${client.id} ${id}`)) this.#open.set(id, client);
  }

  #check(): void {
    const { loop, observed } = this.#made;
    this.sightings.orphans = observed.filter(({ type }) => type === "Sys.OrphanOutcome").length;
    const left = [...this.#open.keys()].filter((id) => !loop.pending.has(id));
    if (left.length > 0) throw new Error(`never answered and not pending: ${left.join(" ")}`);
    // Only the actor without answers may have requests left, and only without timeouts.
    for (const { type } of loop.pending) if (type !== "Crash.Ask") throw new Error(`${type} is still pending`);
    for (const [name, handled] of this.#handled) this.#checkOrder(this.#given.get(name) ?? [], handled, name);
  }

  /** First in, first out: handled messages are a subsequence of the given ones, because some were refused. */
  #checkOrder(given: readonly string[], handled: readonly string[], name: string): void {
    let at = 0;
    for (const id of handled) {
      const found = given.indexOf(id, at);
      if (found === -1) {
        // A repeated id has a second place in the order.
        if (given.includes(id)) continue;
        throw new Error(`${name} handled ${id} out of order`);
      }
      at = found + 1;
    }
  }

  #note(lists: Map<string, string[]>, name: string, id: string): void {
    lists.set(name, [...(lists.get(name) ?? []), id]);
  }

  #anyClient(): Client | undefined {
    const clients = [...this.#clients];
    return clients[this.#below(Math.max(1, clients.length))];
  }

  #below(bound: number): number {
    return Math.floor(this.#host.random() * bound);
  }
}
