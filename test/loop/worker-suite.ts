/** A real Worker as an actor: the same on every kind of worker. */
import { describe, expect, test } from "#test";
import type { Host } from "../../src/host/host.ts";
import { systemHost } from "../../src/host/system-host.ts";
import type { CapabilityActor } from "../../src/loop/capability.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { ErrorData } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import type { HandlerOptions } from "../../src/work/handler-options.ts";
import { WorkBoard } from "../../src/work/work-board.ts";
import { bare, message, query } from "./loop-setup.ts";
import { workCapability } from "./worker-handlers.ts";

/** `spawn` starts a worker that serves, `spawnBare` one that has only the Worker surface. */
export function workerSuite(kind: string, spawn: () => CapabilityActor, spawnBare: () => CapabilityActor): void {
  const boot = async ({ host = systemHost(), board, ...options }: Setting = {}) => {
    const told: Json[] = [];
    const observed: string[] = [];
    let restarted: () => void = () => undefined;
    const comesBack = new Promise<void>((resolve) => {
      restarted = resolve;
    });
    const home = capability({
      description: "home",
      queries: { "Home.Ask": { handle: (data: Json) => `home ${data}` } },
      on: { "Work.Done": (data) => void told.push(data) },
    });
    const loop = await EventLoop.boot({
      host,
      capabilities: { work: workCapability(board ? watched(spawn, board) : spawn, options), home },
      observe: ({ type }) => {
        observed.push(type);
        if (type === "Sys.ActorRestarted") restarted();
      },
    });
    const ask = async (type: string, id: string, data: Json = null) =>
      answerOf(await loop.request(query(type, id, data)));
    return { loop, ask, told, observed, comesBack };
  };

  describe(`${kind} as actors`, () => {
    test("[L31] requests, events, failures and requests of the worker's own go through", async () => {
      const { loop, ask, told, observed } = await boot();
      const answers = await Promise.all([1, 2, 3].map((n) => ask("Work.Double", `d${n}`, n)));
      expect(answers).toEqual([2, 4, 6]);
      expect(await ask("Work.AskHome", "h", "asked")).toBe("home asked");
      expect(await ask("Work.Fail", "f")).toBe("500 on purpose");
      await loop.drained();
      expect(told).toEqual([1, 2, 3]);
      expect(observed.filter((type) => type !== "Sys.Routed")).toEqual(["Sys.ActorFault"]);
      expect(loop.liveness).toMatchObject({ quiescent: true, mailboxes: 0 });
      await loop.stop();
    });

    test("[L12] [L31] a declared type without a handler in the worker is an error, not an empty answer", async () => {
      const { loop, ask } = await boot();
      expect(await ask("Work.Missing", "m")).toBe(
        "500 query Work.Missing is declared, but the actor has no handler for it",
      );
      await loop.stop();
    });

    const impure = "twice: must be a JSON value, got a function";
    const odd: readonly (readonly [what: string, answer: string])[] = [
      ["answer", `500 the worker gave an invalid answer: data.${impure}`],
      ["later answer", `500 the worker gave an invalid answer: data.${impure}`],
      ["lineage", `500 the worker gave an invalid answer: metadata.correlation.${impure}`],
      ["event", `500 data.${impure}`],
      ["question", `500 not sent: data.${impure}`],
      ["message", `500 not sent: data.${impure}`],
    ];
    test("[L11] [L31] a value that cannot be cloned fails its own message and no other of the worker", async () => {
      const { loop, ask, observed } = await boot();
      for (const [what, answer] of odd) {
        const answers = [ask("Work.Odd", what, what), ask("Work.Double", `beside ${what}`, 2)];
        expect(await Promise.all(answers)).toEqual([answer, 4]);
      }
      expect(await ask("Work.Odd", "proxy", "proxy")).toMatch(/^500 the worker gave an invalid answer: .*cloned/);
      await loop.drained();
      const faults = observed.filter((type) => type !== "Sys.Routed");
      expect(faults).toEqual([...odd, "proxy"].map(() => "Sys.ActorFault"));
      expect(loop.liveness).toMatchObject({ quiescent: true, mailboxes: 0 });
      await loop.stop();
    });

    test("[L9] [L31] a delivery to a worker fails with its handler", async () => {
      const deliveries = new Map<string, (given: Message) => Promise<void>>();
      const loop = await EventLoop.boot({
        host: systemHost(),
        capabilities: { work: workCapability(spawn) },
        events: {
          publish: async () => undefined,
          subscribe: (type, _subscriber, deliver) => void deliveries.set(type, deliver),
        },
      });
      const deliver = async (data: Json) => {
        await deliveries.get("Work.Told")?.(message("event", "Work.Told", `e${data}`, data));
        return "handled";
      };
      const ends = await Promise.all([1, null, 2].map((data) => deliver(data).catch((error: Error) => error.message)));
      expect(ends).toEqual(["cannot do 1", "handled", "cannot do 2"]);
      await loop.stop();
    });

    test("[L89] [L31] an event that a worker handles is over when the events that its handler emitted are journaled", async () => {
      const deliveries = new Map<string, (given: Message) => Promise<void>>();
      const journal = Promise.withResolvers<void>();
      const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
      const loop = await EventLoop.boot({
        host: systemHost(),
        capabilities: { work: workCapability(spawn) },
        events: {
          publish: () => {
            ask();
            return journal.promise;
          },
          subscribe: (type, _subscriber, deliver) => void deliveries.set(type, deliver),
        },
      });
      const order: string[] = [];
      const delivered = deliveries.get("Work.Told")?.(message("event", "Work.Told", "e1", "emit"));
      void delivered?.then(() => order.push("over"));
      await asked;
      // Its handler has ended: the worker handles one message after the other, and has answered the next.
      expect(answerOf(await loop.request(query("Work.AskHome", "h")))).toMatch(/^404 /);
      order.push("journaled");
      journal.resolve();
      await delivered;
      expect(order).toEqual(["journaled", "over"]);
      await loop.stop();
    });

    test("[L91] [L31] an undeclared event that a worker emits fails the message that it handles", async () => {
      const deliveries = new Map<string, (given: Message) => Promise<void>>();
      const loop = await EventLoop.boot({
        host: systemHost(),
        capabilities: { work: workCapability(spawn) },
        events: {
          publish: async () => undefined,
          subscribe: (type, _subscriber, deliver) => void deliveries.set(type, deliver),
        },
      });
      const answer = answerOf(await loop.request(query("Work.Odd", "q", "undeclared")));
      expect(answer).toMatch(
        /^500 Work\.Secret was not emitted: event Work\.Secret is not declared as outbound by work/,
      );
      const told = deliveries.get("Work.Told")?.(message("event", "Work.Told", "e1", "undeclared"));
      await expect(told).rejects.toThrow(
        /^Work\.Secret was not emitted: event Work\.Secret is not declared as outbound by/,
      );
      await loop.drained();
      await loop.stop();
    });

    test("[L15] [L31] a worker with the Worker surface alone has room again when it has answered; events it has when it took them", async () => {
      const deliveries = new Map<string, (given: Message) => Promise<void>>();
      const loop = await EventLoop.boot({
        host: systemHost(),
        capabilities: { bare: bare(spawnBare, { subscribes: ["Bare.Told"] }) },
        events: {
          publish: async () => undefined,
          subscribe: (type, _subscriber, deliver) => void deliveries.set(type, deliver),
        },
        mailboxMax: 3,
      });
      const ask = async (n: number) => answerOf(await loop.request(query("Bare.Ask", `q${n}`, n)));
      const tell = async (n: number) => deliveries.get("Bare.Told")?.(message("event", "Bare.Told", `e${n}`, n));
      // Before its first message, the kind of worker is unknown.
      const [first] = await Promise.all([ask(0), tell(0)]);
      const answers: Json[] = [];
      for (let n = 1; n < 6; n++) answers.push(await ask(n));
      expect([first, answers]).toEqual([0, [2, 4, 6, 8, "400 too many"]]);
      for (let n = 1; n < 6; n++) await tell(n);
      // One that is not answered holds up no event, and has its place until it is.
      const late = ask(-1);
      while (loop.liveness.mailboxes === 0) await systemHost().yield();
      await tell(6);
      expect(loop.liveness.mailboxes).toBe(1);
      expect([await ask(1), await late]).toEqual([2, "late"]);
      await loop.drained();
      expect(loop.liveness).toMatchObject({ quiescent: true, mailboxes: 0 });
      await loop.stop();
    });

    test("[L31] [L41] a worker's sends are journaled, and its requests are not", async () => {
      const kept: Json[] = [];
      const home = capability({
        ...{ description: "home", durable: "unawaited" },
        commands: { "Home.Do": { handle: (data: Json) => `did ${data}` } },
        queries: { "Home.Ask": { handle: () => null } },
      });
      const { promise: isKept, resolve } = Promise.withResolvers<void>();
      const loop = await EventLoop.boot({
        host: systemHost(),
        capabilities: { work: { ...workCapability(spawn), durable: "unawaited" }, home },
        commands: {
          keep: async ({ data }) => {
            kept.push(data);
            resolve();
            return undefined;
          },
          find: async () => undefined,
          take: () => undefined,
        },
      });
      const say = async (type: string, data: Json) =>
        answerOf(await loop.request(message("command", type, type, data)));
      expect(await say("Work.CommandHome", "asked")).toBe("did asked");
      expect(await say("Work.SendHome", "sent")).toBe(null);
      // Journaled commands stay, since they are not delivered here; others are handled at once.
      await Promise.race([isKept, loop.drained()]);
      expect(kept).toEqual(["sent"]);
      await loop.stop();
    });

    test("[U66] [U34] a worker's handler that times out is answered 504, aborted and left behind until it ends", async () => {
      const board = new WorkBoard(systemHost());
      const { loop, ask, told } = await boot({ board, timeoutMs: 50 });
      const say = async (type: string) => answerOf(await loop.request(message("command", type, type, null)));
      expect(await say("Work.Wait")).toBe("504 the handler timed out after 50 ms");
      const listed = board.list(10).map(({ handler, type, state, timeoutMs }) => [handler, type, state, timeoutMs]);
      expect(listed).toEqual([["work", "Work.Wait", "left-behind", 50]]);
      // The actor goes on, and each later use of the context was refused.
      const refused = ["WORK_OVER", "WORK_OVER", "WORK_OVER"];
      expect(await ask("Work.Late", "late")).toEqual(["the handler timed out after 50 ms", ...refused]);
      expect(await say("Work.Release")).toBe(null);
      while (board.health().leftBehind > 0) await systemHost().yield();
      await loop.drained();
      expect([told, board.list(10)]).toEqual([[], []]);
      await loop.stop();
    });

    test("[U66] [U34] an event that a worker handles for too long fails as a timeout", async () => {
      const deliveries = new Map<string, (given: Message) => Promise<void>>();
      const loop = await EventLoop.boot({
        host: systemHost(),
        capabilities: { work: workCapability(spawn, { timeoutMs: 50 }) },
        events: {
          publish: async () => undefined,
          subscribe: (type, _subscriber, deliver) => void deliveries.set(type, deliver),
        },
      });
      const told = deliveries.get("Work.Told")?.(message("event", "Work.Told", "e1", "wait"));
      await expect(told).rejects.toMatchObject({ message: "the handler timed out after 50 ms", isTimeout: true });
      await loop.stop();
    });

    test("[U67] a worker whose handler blocks its thread past the timeout is ended, and another takes its place", async () => {
      const board = new WorkBoard(systemHost());
      const { loop, ask, comesBack } = await boot({ board, timeoutMs: 50, host: impatientHost() });
      const blocked = answerOf(await loop.request(message("command", "Work.Block", "b", null)));
      expect(blocked).toBe("504 the handler timed out after 50 ms");
      await comesBack;
      expect(board.list(10)).toEqual([]);
      expect(await ask("Work.Double", "d", 21)).toBe(42);
      await loop.stop();
    });

    test("[L17] [L31] an escaped error ends a worker: its requests are answered with 500, and another takes its place", async () => {
      const { loop, ask, comesBack } = await boot();
      // One line: no runtime's excerpt of the source, and no stack.
      expect(await ask("Work.Crash", "c")).toMatch(/^500 work crashed: [^\n|]*escaped[^\n|]*$/);
      await comesBack;
      expect(await ask("Work.Double", "d", 21)).toBe(42);
      await loop.stop();
    });

    for (const thrown of ["error", "", null]) {
      test(`[L17] [L31] a worker that crashes by a value without a text has a reason: ${JSON.stringify(thrown)}`, async () => {
        const { loop, ask } = await boot();
        expect(await ask("Work.CrashSilently", "c", thrown)).toMatch(/^500 work crashed: \S/);
        await loop.stop();
      });
    }
  });
}

interface Setting extends Pick<HandlerOptions, "timeoutMs"> {
  readonly host?: Host;
  /** Lists the handlers of the worker. */
  readonly board?: WorkBoard;
}

/** No timer of it takes longer than 200 ms. */
function impatientHost(): Host {
  const host = systemHost();
  return {
    now: () => host.now(),
    monotonic: () => host.monotonic(),
    timer: (delayMs, fire, options) => host.timer(Math.min(delayMs, 200), fire, options),
    task: (run) => host.task(run),
    yield: () => host.yield(),
    microtask: (run) => host.microtask(run),
    report: (error) => host.report(error),
    id: () => host.id(),
    random: () => host.random(),
    randomBytes: (length) => host.randomBytes(length),
  };
}

function watched(spawn: () => CapabilityActor, board: WorkBoard): () => CapabilityActor {
  return () => {
    const actor = spawn();
    actor.watch?.(board, "work");
    return actor;
  };
}

function answerOf({ kind, data }: Message): Json {
  if (kind === "reply") return data;
  const { code, message } = data as ErrorData;
  return `${code} ${message}`;
}
