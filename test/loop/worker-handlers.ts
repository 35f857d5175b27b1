/** Capabilities of the test workers, for every kind of worker. */
import type { Capability, CapabilityActor } from "../../src/loop/capability.ts";
import { declared } from "../../src/loop/capability-definition.ts";
import type { CapabilityContext } from "../../src/loop/mailbox-actor.ts";
import type { WorkerHandlers } from "../../src/loop/worker-serve.ts";
import type { Json } from "../../src/message/json.ts";
import { commandMessage as makeCommand } from "../../src/message/lineage.ts";
import type { HandlerOptions } from "../../src/work/handler-options.ts";

/** A value without JSON text, which no worker can send. */
const odd = () => ({ twice: (n: number) => n * 2 }) as never as Json;

/** The outcomes of what a handler did after its timeout. */
const late: string[] = [];
const released = Promise.withResolvers<void>();

/** Waits for the abort, uses the context again, and ends when it is released. */
async function untilReleased({ signal, emit, command, send, host }: CapabilityContext): Promise<string> {
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  late.push((signal.reason as Error).message);
  const uses: readonly (() => unknown)[] = [
    () => emit("Work.Done", "late"),
    () => command("Home.Do", "late"),
    () => send(makeCommand(host, "Home.Do", "late", { causation: host.id() })),
  ];
  for (const use of uses) {
    try {
      use();
      late.push("not refused");
    } catch (error) {
      late.push((error as { code?: string }).code ?? "no code");
    }
  }
  await released.promise;
  return "late";
}

export const handlers: WorkerHandlers = {
  emits: { "Work.Done": true },
  sends: { "Home.Ask": "query", "Home.Do": "command" },
  on: {
    "Work.Told": (data: Json, context) => {
      const { emit } = context;
      if (data === "emit") return emit("Work.Done", null);
      if (data === "undeclared") return emit("Work.Secret", null);
      if (data === "wait") return untilReleased(context);
      if (data !== null) throw new Error(`cannot do ${data}`);
    },
  },
  commands: {
    "Work.SendHome": {
      handle: (data: Json, { send, host }, { metadata }) =>
        send(makeCommand(host, "Home.Do", data, { causation: metadata.id })),
    },
    "Work.Wait": { handle: (_data: Json, context) => untilReleased(context) },
    "Work.Release": { handle: () => released.resolve() },
    "Work.Block": {
      handle: () => {
        for (;;);
      },
    },
    "Work.CommandHome": { handle: (data: Json, context) => context.command("Home.Do", data) },
  },
  queries: {
    "Work.Late": { handle: () => late },
    "Work.Double": {
      handle: (data: Json, context) => {
        context.emit("Work.Done", data);
        return (data as number) * 2;
      },
    },
    "Work.AskHome": { handle: (data: Json, context) => context.query("Home.Ask", data) },
    "Work.Fail": {
      handle: () => {
        throw new Error("on purpose");
      },
    },
    "Work.Odd": {
      handle: (data: Json, { emit, query, send, host }, { metadata }): Json | Promise<Json> => {
        switch (data) {
          case "answer":
            return odd();
          case "later answer":
            return Promise.resolve(odd());
          case "proxy":
            return new Proxy({}, {});
          case "lineage":
            Object.assign(metadata, { correlation: odd() });
            return null;
          case "event":
            emit("Work.Done", odd());
            return "emitted";
          case "undeclared":
            emit("Work.Secret", null);
            return "emitted";
          case "question":
            return query("Home.Ask", odd());
          default:
            send(makeCommand(host, "Home.Do", odd(), { causation: metadata.id }));
            return "sent";
        }
      },
    },
    "Work.CrashSilently": {
      handle: (data: Json) => {
        setTimeout(() => {
          throw data === "error" ? new RangeError("") : data;
        });
        return new Promise<Json>(() => undefined);
      },
    },
    "Work.Crash": {
      handle: () => {
        // Outside of any handling: only the observer of the worker can catch it.
        setTimeout(() => {
          throw new Error("escaped");
        });
        return new Promise<Json>(() => undefined);
      },
    },
  },
};

/** The declaration and the worker's handlers are in two files of an application, and may differ. */
export function workCapability(
  spawn: () => CapabilityActor,
  options: Pick<HandlerOptions, "timeoutMs"> = {},
): Capability {
  const queries = { ...handlers.queries, "Work.Missing": { handle: () => null } };
  return { ...declared({ description: "works elsewhere", ...handlers, queries, ...options }), spawn };
}
