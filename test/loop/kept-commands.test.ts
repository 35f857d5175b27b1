/**
 * The loop's part in journaled commands: answers while the journal is slow, refuses, or delivers without a requester.
 */
import { describe, expect, test } from "#test";
import { COMMANDS_KEPT_MAX, KEPT_ASKED_MAX, KEPT_LOOK_MS, KEPT_LOOK_PAUSE_MS } from "../../src/limits.ts";
import type { CommandJournal, DeliverCommand, KeptBefore } from "../../src/loop/command-journal.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { timerCapability } from "../../src/loop/timer.ts";
import type { Message } from "../../src/message/envelope.ts";
import { Failure } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { command, deferred, message, setup } from "./loop-setup.ts";

/** A journal with answers and deliveries that the test decides. */
class JournalByHand implements CommandJournal {
  /** Its status of journaled commands; undefined for unknown ones. */
  readonly rows = new Map<string, KeptBefore>();
  readonly lookedFor: string[] = [];
  isBroken = false;
  readonly listeners = new Set<() => void>();
  readonly asked: { message: Message; answer: PromiseWithResolvers<KeptBefore | undefined> }[] = [];
  #deliver: DeliverCommand | undefined;

  keep(message: Message): Promise<KeptBefore | undefined> {
    const answer = Promise.withResolvers<KeptBefore | undefined>();
    this.asked.push({ message, answer });
    return answer.promise;
  }

  async find(id: string): Promise<KeptBefore | undefined> {
    this.lookedFor.push(id);
    if (this.isBroken) throw new Error("disk gone");
    return this.rows.get(id);
  }

  onForeignChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  take(_type: string, _capability: string, deliver: DeliverCommand): void {
    this.#deliver = deliver;
  }

  /** Delivers; resolves with the reason of a failure, or with undefined. */
  async deliver(message: Message, deaths = 0): Promise<unknown> {
    const failing = (error: string) => ({ id: 1, lease: 1, attempt: 1, outcome: { kind: "failed" as const, error } });
    return this.#deliver?.(message, { deaths, attempt: 1, failing }).catch((thrown: unknown) => thrown);
  }
}

const worker = (
  durable?: "before",
  handle: (data: Json) => Json | Promise<Json> = (data) => data,
  { idempotent = false } = {},
) =>
  capability({
    ...{ description: "works", idempotent, ...(durable ? { durable } : {}) },
    commands: { "Work.Do": { handle: (data) => handle(data) } },
  });

describe("keeping commands", () => {
  test("[L21] [L41] a requester that joined a running command and left while queued gets no answer", async () => {
    const gate = Promise.withResolvers<Json>();
    const commands = new JournalByHand();
    const { loop, client, settle } = await setup({ worker: worker("before", () => gate.promise) }, { commands });
    const [first, gone, later] = [client(), client(), client()];
    const ask = (who: typeof first) => loop.receive(command("Work.Do", "one"), who);
    ask(first);
    await settle();
    commands.asked[0]!.answer.resolve(undefined);
    const outcome = commands.deliver(commands.asked[0]!.message);
    await settle();
    loop.disconnect(first);
    ask(gone);
    loop.disconnect(gone);
    await settle();
    ask(later);
    await settle();
    // Not 409: no other requester waits for it.
    expect(later.answers).toEqual([]);
    loop.disconnect(later);
    gate.reject(new Failure(503, "not now"));
    await settle();
    // The journal delivers it again.
    expect(await outcome).toMatchObject({ name: "Failure", code: 503 });
  });

  test("[L41] no command is dispatched before it is journaled", async () => {
    const done: Json[] = [];
    const commands = new JournalByHand();
    const { loop, settle } = await setup({ worker: worker(undefined, (data) => done.push(data)) }, { commands });
    loop.enqueue(command("Work.Do", "one", 1));
    await settle();
    expect([done, commands.asked.length, loop.liveness.quiescent]).toEqual([[], 1, false]);
    commands.asked[0]?.answer.resolve(undefined);
    await settle();
    expect(done).toEqual([]);
    const delivered = commands.deliver(command("Work.Do", "one", 1));
    await settle();
    expect(await delivered).toBeUndefined();
    expect([done, loop.liveness.quiescent]).toEqual([[1], true]);
  });

  test("[L41] a command that the journal refuses is answered and observed, and so is one above the limit", async () => {
    const commands = new JournalByHand();
    const { loop, settle, faults } = await setup({ worker: worker() }, { commands });
    loop.enqueue(command("Work.Do", "one"));
    await settle();
    commands.asked[0]?.answer.reject(new Error("disk full"));
    await settle();
    expect(faults()).toEqual(["Sys.Overload"]);
    expect(loop.pending.size).toBe(0);
    for (let n = 0; n <= COMMANDS_KEPT_MAX; n++) loop.enqueue(command("Work.Do", `many ${n}`));
    await settle();
    expect(loop.pending.size).toBe(COMMANDS_KEPT_MAX);
    expect(faults()).toEqual(["Sys.Overload", "Sys.Overload"]);
  });

  test("[L42] a waiting requester hears that its command was not journaled; the id is in use meanwhile", async () => {
    const commands = new JournalByHand();
    const { loop, settle, client } = await setup({ worker: worker("before") }, { commands });
    const one = client();
    loop.receive(command("Work.Do", "one"), one);
    await settle();
    loop.receive(command("Work.Do", "one"), one);
    await settle();
    commands.asked[0]?.answer.reject(new Failure(422, "too large"));
    await settle();
    expect(one.answers).toEqual(["error one 409", "error one 422"]);
  });

  test("[L86] the command of a requester that left or timed out runs to its end", async () => {
    const done: Json[] = [];
    const commands = new JournalByHand();
    const { loop, settle, client, host } = await setup(
      { worker: worker("before", (data) => done.push(data)) },
      { commands, requestTimeoutMs: 1_000 },
    );
    const [gone, patient] = [client(), client()];
    loop.receive(command("Work.Do", "one", 1), gone);
    loop.receive(command("Work.Do", "two", 2), patient);
    await settle();
    loop.disconnect(gone);
    await host.advance(2_000);
    expect([gone.answers, patient.answers, done]).toEqual([[], ["error two 504"], []]);
    for (const { message } of commands.asked) await host.run(() => commands.deliver(message));
    await settle();
    expect(done).toEqual([1, 2]);
    expect([gone.answers.length, patient.answers.length, loop.pending.size]).toEqual([0, 1, 0]);
  });

  test("[L39] a command with a dead process is interrupted, and a repeated request is told", async () => {
    const done: Json[] = [];
    const commands = new JournalByHand();
    const { loop, settle, client, faults, host } = await setup(
      { worker: worker("before", (data) => done.push(data)) },
      { commands },
    );
    const one = client();
    loop.receive(command("Work.Do", "one"), one);
    await settle();
    commands.asked[0]?.answer.resolve({ status: "pending" });
    const failed = await host.run(() => commands.deliver(command("Work.Do", "one"), 1));
    expect(String(failed)).toContain("interrupted");
    await settle();
    expect([one.answers, done, faults()]).toEqual([["error one 500"], [], ["Sys.ActorFault"]]);
    loop.receive(command("Work.Do", "two"), one);
    await settle();
    commands.asked[1]?.answer.resolve({ status: "failed", error: "interrupted" });
    await settle();
    expect(one.answers[1]).toBe("error two 500");
    expect(loop.pending.size).toBe(0);
  });

  test("[L80] a command that a process died over is interrupted although its id is in use for another request", async () => {
    const done: Json[] = [];
    const commands = new JournalByHand();
    const { loop, settle, client, faults, host } = await setup(
      { worker: worker("before", (data) => done.push(data)) },
      { commands },
    );
    const other = client();
    loop.receive(command("Work.Do", "one", "another request"), other);
    await settle();
    const failed = await host.run(() => commands.deliver(command("Work.Do", "one", "journaled"), 1));
    // A 503 would put the row back without the count of its deaths, and the next delivery would run the handler.
    expect(failed).not.toMatchObject({ code: 503 });
    expect(String(failed)).toContain("interrupted");
    expect([other.answers, done, faults()]).toEqual([[], [], ["Sys.ActorFault"]]);
    commands.asked[0]?.answer.reject(new Failure(422, "it is there with other content"));
    await settle();
    expect([other.answers, done, loop.pending.size]).toEqual([["error one 422"], [], 0]);
  });
});

describe("an actor that takes no more", () => {
  /** Its mailbox holds one command, until the gate is open. */
  async function busy(durable?: "before") {
    const done: Json[] = [];
    const gate = deferred();
    const journal = new JournalByHand();
    const handle = async (data: Json) => {
      await gate.promise;
      return done.push(data);
    };
    const made = await setup(
      { timer: timerCapability(), worker: worker(durable, handle) },
      { commands: journal, mailboxMax: 1 },
    );
    return { ...made, journal, gate, done, one: made.client() };
  }

  test("[L41] [T9] a timer's command comes again later, also where the journal delivers it before it says that it has it", async () => {
    const { loop, host, settle, journal, gate, done, one } = await busy();
    for (const data of [1, 2]) {
      loop.receive(
        command("Timer.Set", `set ${data}`, { delayMs: 10, message: { kind: "command", type: "Work.Do", data } }),
        one,
      );
      await settle();
    }
    await host.advance(10);
    const [first, second] = journal.asked.map((asked) => asked.message) as [Message, Message];
    const ends = [first, second].map((sent) => journal.deliver(sent));
    await settle();
    expect(await ends[1]).toMatchObject({ code: 503 });
    for (const { answer } of journal.asked) answer.resolve(undefined);
    gate.resolve();
    await settle();
    const again = journal.deliver(second);
    await settle();
    expect([await ends[0], await again, done]).toEqual([undefined, undefined, [1, 2]]);
    expect(loop.liveness).toMatchObject({ quiescent: true, timers: 0 });
  });

  test("[L87] a requester of a journaled command waits while the actor is full, and is answered when it was handled", async () => {
    const { loop, settle, journal, gate, done, one, faults } = await busy("before");
    for (const data of [1, 2]) loop.receive(command("Work.Do", `c${data}`, data), one);
    await settle();
    for (const { answer } of journal.asked) answer.resolve(undefined);
    const ends = journal.asked.map(({ message: sent }) => journal.deliver(sent));
    await settle();
    expect([await ends[1], one.answers, faults()]).toMatchObject([{ code: 503 }, [], ["Sys.Overload"]]);
    gate.resolve();
    await settle();
    const again = journal.deliver(command("Work.Do", "c2", 2));
    await settle();
    expect([await ends[0], await again, done]).toEqual([undefined, undefined, [1, 2]]);
    expect([one.answers, loop.pending.size]).toEqual([["reply c1 1", "reply c2 2"], 0]);
  });

  test("[L42] [L43] a requester hears the outcome even if another process has handled the command meanwhile", async () => {
    const { loop, host, settle, journal, one } = await busy("before");
    for (const data of [1, 2]) loop.receive(command("Work.Do", `c${data}`, data), one);
    await settle();
    for (const { message: sent } of journal.asked) void journal.deliver(sent);
    journal.rows.set("c2", { status: "done" });
    await host.advance(KEPT_LOOK_MS);
    expect([one.answers, loop.pending.size]).toEqual([["error c2 410"], 1]);
  });

  test("[L15] [L87] a command for a full actor is refused and not journaled; the same command is handled later", async () => {
    const { loop, settle, journal, gate, done, one } = await busy("before");
    const ask = async (data: number) => {
      loop.receive(command("Work.Do", `c${data}`, data), one);
      await settle();
      const asked = journal.asked.pop();
      if (asked) void journal.deliver(asked.message);
      await settle();
      return asked !== undefined;
    };
    expect([await ask(1), await ask(2), one.answers]).toEqual([true, false, ["error c2 503"]]);
    expect(one.received[0]?.metadata["refused"]).toBe(true);
    // A command without a requester stays: the journal offers it later.
    loop.enqueue(command("Work.Do", "c3", 3));
    await settle();
    expect(journal.asked.splice(0).length).toBe(1);
    gate.resolve();
    await settle();
    expect([await ask(2), done]).toEqual([true, [1, 2]]);
    expect(one.answers).toEqual(["error c2 503", "reply c1 1", "reply c2 2"]);
  });
});

describe("one id for two commands", () => {
  test("[L42] another request under the id of a running command does not get its answer", async () => {
    const journal = new JournalByHand();
    const two = capability({
      description: "does two things",
      commands: { "Work.Do": { handle: () => "did" }, "Work.Undo": { handle: () => "undid" } },
    });
    const { loop, settle, client } = await setup({ two }, { commands: journal });
    const [data, type, same] = [client(), client(), client()];
    loop.enqueue(command("Work.Do", "one", { n: 1 }));
    await settle();
    loop.receive(command("Work.Do", "one", { n: 2 }), data);
    loop.receive(command("Work.Undo", "one", { n: 1 }), type);
    loop.receive(command("Work.Do", "one", { n: 1 }), same);
    await settle();
    const delivered = journal.deliver(command("Work.Do", "one", { n: 1 }));
    await settle();
    expect(await delivered).toBeUndefined();
    expect([data, type, same].map(({ answers }) => answers)).toEqual([
      ["error one 409"],
      ["error one 409"],
      ['reply one "did"'],
    ]);
  });

  test("[L88] the journal's copy of a command is handled, also if the same request comes with another timestamp", async () => {
    const seen: number[] = [];
    const journal = new JournalByHand();
    const noting = capability({
      ...{ description: "notes when", durable: "before" },
      commands: { "Work.Do": { handle: (_data, _context, { metadata }) => seen.push(metadata.timestamp) } },
    });
    const { loop, settle, client } = await setup({ noting }, { commands: journal });
    const one = client();
    const [asked, there] = [1, 2].map((timestamp) => message("command", "Work.Do", "one", null, { timestamp }));
    loop.receive(asked as Message, one);
    await settle();
    const delivered = journal.deliver(there as Message);
    await settle();
    expect([await delivered, one.answers, seen]).toEqual([undefined, ["reply one 1"], [2]]);
  });

  test("[L42] another request under the id of a journaled command is refused, and the journaled command comes again", async () => {
    const done: Json[] = [];
    const journal = new JournalByHand();
    const handle = (data: Json) => done.push(data);
    for (const idempotent of [false, true]) {
      const { loop, settle, client } = await setup(
        { worker: worker("before", handle, { idempotent }) },
        { commands: journal },
      );
      const one = client();
      const kept = command("Work.Do", "one", "kept");
      loop.receive(command("Work.Do", "one", "something else"), one);
      await settle();
      expect(await journal.deliver(kept)).toMatchObject({ code: 503 });
      expect(done.splice(0)).toEqual([]);
      journal.asked.pop()?.answer.reject(new Failure(422, "it is there in other words"));
      await settle();
      // It may be handled at any time without harm.
      expect([one.answers, done.splice(0)]).toEqual(
        idempotent ? [["reply one 1"], ["something else"]] : [["error one 422"], []],
      );
      const delivered = journal.deliver(kept);
      await settle();
      expect([await delivered, done.splice(0)]).toEqual([undefined, ["kept"]]);
    }
  });
});

describe("commands that another process handles", () => {
  const KEPT: KeptBefore = { status: "processing" };

  async function asked(journal: JournalByHand, idempotent: boolean) {
    const done: Json[] = [];
    const handle = (data: Json) => done.push(data);
    const made = await setup({ worker: worker("before", handle, { idempotent }) }, { commands: journal });
    const one = made.client();
    made.loop.receive(command("Work.Do", "one", 1), one);
    await made.settle();
    journal.rows.set("one", KEPT);
    journal.asked[0]?.answer.resolve(KEPT);
    await made.settle();
    return { ...made, one, done };
  }

  test("[L43] a waiting requester is answered when another process has settled the command, and no request stays pending", async () => {
    for (const [status, told] of [["done", "error one 410"] as const, ["failed", "error one 500"] as const]) {
      const journal = new JournalByHand();
      const { one, done, host, loop } = await asked(journal, false);
      await host.advance(5 * KEPT_LOOK_MS);
      expect([one.answers, journal.lookedFor.length > 1]).toEqual([[], true]);
      journal.rows.set("one", { status, error: "bad" });
      await host.advance(KEPT_LOOK_MS);
      expect([one.answers, done, loop.liveness.quiescent, loop.pending.kept]).toEqual([[told], [], true, 0]);
      const { length } = journal.lookedFor;
      await host.advance(5 * KEPT_LOOK_MS);
      expect(journal.lookedFor.length).toBe(length);
    }
  });

  test("[L111] a write of another process wakes the question for a kept command; a burst of writes is one question", async () => {
    const journal = new JournalByHand();
    const { one, host } = await asked(journal, false);
    const wake = async (times: number) => {
      for (let n = 0; n < times; n++) for (const listener of [...journal.listeners]) listener();
      await host.advance(KEPT_LOOK_PAUSE_MS);
    };
    await host.advance(KEPT_LOOK_MS - 1);
    expect(journal.lookedFor).toEqual([]);
    await wake(20);
    expect([journal.lookedFor.length, one.answers]).toEqual([1, []]);
    journal.rows.set("one", { status: "done" });
    await wake(20);
    expect([journal.lookedFor.length, one.answers]).toEqual([2, ["error one 410"]]);
    // No command is left to ask for, so writes are not listened to.
    expect(journal.listeners.size).toBe(0);
  });

  test("[L43] an idempotent command that another process handled is handled here too", async () => {
    const journal = new JournalByHand();
    const { one, done, host, loop } = await asked(journal, true);
    journal.rows.set("one", { status: "done" });
    await host.advance(KEPT_LOOK_MS);
    expect([one.answers, done, loop.pending.size]).toEqual([["reply one 1"], [1], 0]);
  });

  test("[L43] a journal that does not answer is asked again, and a row that was removed is over", async () => {
    const journal = new JournalByHand();
    const { one, host, loop } = await asked(journal, false);
    journal.isBroken = true;
    await host.advance(3 * KEPT_LOOK_MS);
    expect([one.answers, loop.pending.size]).toEqual([[], 1]);
    journal.isBroken = false;
    journal.rows.delete("one");
    await host.advance(KEPT_LOOK_MS);
    expect([one.answers, loop.pending.size]).toEqual([["error one 410"], 0]);
  });

  test("[L43] commands without requesters are dropped from the watch, and a long list is checked in turns", async () => {
    const journal = new JournalByHand();
    const { loop, host, settle, faults } = await setup({ worker: worker() }, { commands: journal });
    const ids = Array.from({ length: KEPT_ASKED_MAX + 1 }, (_, n) => `c${n}`);
    for (const id of ids) {
      loop.enqueue(command("Work.Do", id));
      journal.rows.set(id, KEPT);
    }
    await settle();
    for (const { answer } of journal.asked) answer.resolve(undefined);
    await host.advance(2 * KEPT_LOOK_MS);
    expect(new Set(journal.lookedFor)).toEqual(new Set(ids));
    for (const id of ids) journal.rows.set(id, { status: "done" });
    await host.advance(2 * KEPT_LOOK_MS);
    expect([loop.pending.size, faults()]).toEqual([0, []]);
  });

  test("[L43] the journal is asked neither for commands that were delivered at once nor after the end", async () => {
    const journal = new JournalByHand();
    const { loop, host, settle } = await setup({ worker: worker() }, { commands: journal });
    loop.enqueue(command("Work.Do", "one"));
    await settle();
    const delivered = journal.deliver(command("Work.Do", "one"));
    journal.asked[0]?.answer.resolve(undefined);
    await settle();
    await delivered;
    await host.advance(5 * KEPT_LOOK_MS);
    loop.enqueue(command("Work.Do", "two"));
    await settle();
    journal.asked[1]?.answer.resolve(undefined);
    await settle();
    await host.run(() => loop.stop());
    await host.advance(5 * KEPT_LOOK_MS);
    expect(journal.lookedFor).toEqual([]);
  });
});
