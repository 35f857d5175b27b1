/** The start of timer tests: a loop with the Timer capability and an actor that notes the arrival of messages. */
import { type SimulatedHost, simulatedHost } from "../../src/host/simulated-host.ts";
import { timerCapability } from "../../src/loop/timer.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { Json } from "../../src/message/json.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import type { Store } from "../../src/store/store.ts";
import { BareActor, bare, type Client, command, setup } from "./loop-setup.ts";

export const template = { kind: "command", type: "Build.Run", data: { target: "docs" } };

interface Timed {
  readonly at: number;
  readonly message: Message;
}

export interface TimersOptions {
  readonly store?: ((host: SimulatedHost) => Store) | undefined;
  readonly host?: SimulatedHost;
  /** Whether the actor answers its messages; by default it never does. */
  readonly answers?: (message: Message) => boolean;
}

export async function timers({ store, host = simulatedHost(1), answers = () => false }: TimersOptions = {}) {
  const arrived: Timed[] = [];
  const start = host.monotonic();
  const actor = new BareActor();
  actor.postMessage = (message) => {
    arrived.push({ at: host.monotonic() - start, message });
    if (message.kind !== "event" && answers(message)) actor.reply(message);
  };
  const timer = timerCapability({ store: store?.(host) });
  const made = await setup(
    { timer, build: bare(() => actor, { takes: [["command", "Build.Run"]], subscribes: ["Timer.Fired"] }) },
    { host },
  );
  const one = made.client();
  const ask = async (type: string, data: Json, id: string, metadata: object = {}) => {
    const sent = command(type, id, data);
    made.loop.receive({ ...sent, metadata: { ...sent.metadata, ...metadata } }, one);
    await host.advance(0);
    return timerIdOf(one);
  };
  const set = (data: Json, id = "set", metadata: object = {}) => ask("Timer.Set", data, id, metadata);
  const every = (data: Json, id = "every") => ask("Timer.Every", data, id);
  const cancel = async (timerId: string) => {
    await ask("Timer.Cancel", { timerId }, host.id());
    return one.received.at(-1)?.data;
  };
  return {
    ...made,
    actor,
    one,
    set,
    every,
    cancel,
    arrived,
    types: () => arrived.map(({ at, message }) => `${at} ${message.type}`),
  };
}

function timerIdOf({ received }: Client): string {
  return (received.at(-1)?.data as { timerId?: string } | undefined)?.timerId ?? "";
}

export const stores: readonly [string, ((host: SimulatedHost) => Store) | undefined][] = [
  ["in memory", undefined],
  ["on a store", (host) => memoryStore({ host, disk: new MemoryDisk() })],
];

/** A store with a due table that answers as the test decides. */
export function intercepted(
  host: SimulatedHost,
  answer: (name: string, call: () => Promise<unknown>) => Promise<unknown>,
  disk = new MemoryDisk(),
): Store {
  const store = memoryStore({ host, disk });
  return new Proxy(store, {
    get: (target, key) => {
      const method: unknown = Reflect.get(target, key);
      if (typeof method !== "function") return method;
      if (typeof key !== "string" || !["commit", "changeDue", "dueRows", "earliestDue"].includes(key))
        return method.bind(target);
      return (...given: unknown[]) => answer(key, () => method.apply(target, given));
    },
  });
}
