/** Live queries of clients: shared effects, and the values of each reader. */
import { describe, expect, test } from "vitest";
import { app } from "../../src/app/app.ts";
import type { MetricsView } from "../../src/kernel/metrics.ts";
import { LIVE_QUERIES_MAX, VIEW_EVERY_MS } from "../../src/limits.ts";
import type { Connection } from "../../src/loop/pending-request.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { Json } from "../../src/message/json.ts";
import { Machine, openOn } from "./app-setup.ts";

const board = app("board", ({ cell, computed }) => {
  const count = cell("count", 0);
  const secret = cell("secret", 0, { label: ["s"] });
  let runs = 0;
  const half = computed("half", () => Math.floor(count.get() / 2));
  return {
    commands: {
      "Board.Set": (value: number, tx) => tx.set(count, value),
      "Board.Hide": (value: number, tx) => tx.set(secret, value),
    },
    queries: {
      "Board.Count": () => {
        runs++;
        if (count.get() === 13) throw new Error("13 is no count");
        return count.get();
      },
      "Board.Half": () => half.get(),
      "Board.Runs": () => runs,
      "Board.Secret": () => secret.get(),
      "Board.Times": (factor: number) => count.get() * factor,
    },
  };
});

class Reader implements Connection {
  readonly id: string;
  readonly adapter = "test";
  readonly clearance?: readonly string[];
  readonly heard: Message[] = [];
  hasRoom = true;
  #wake: () => void = () => undefined;
  #room: () => void = () => undefined;

  constructor(id: string, clearance?: readonly string[]) {
    this.id = id;
    if (clearance !== undefined) this.clearance = clearance;
  }

  deliver(answer: Message): void {
    this.stream(answer);
  }

  stream(message: Message): void {
    this.heard.push(message);
    this.#wake();
  }

  whenRoom(): Promise<void> {
    return new Promise((resolve) => {
      this.#room = resolve;
    });
  }

  makeRoom(): void {
    this.hasRoom = true;
    this.#room();
  }

  /** The next message of the kernel. */
  async next(): Promise<Message> {
    while (this.heard.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
    return this.heard.shift() as Message;
  }

  async data(): Promise<Json> {
    return (await this.next()).data;
  }
}

async function opened() {
  const kernel = await openOn("memory", board);
  const { loop } = kernel.kernel;
  const readers: Reader[] = [];
  const reader = (clearance?: readonly string[]): Reader => {
    const made = new Reader(`reader-${readers.length}`, clearance);
    readers.push(made);
    return made;
  };
  let asked = 0;
  const send = (to: Reader, type: string, data: Json) => {
    const metadata = { id: `${to.id}-${++asked}`, timestamp: 1 };
    loop.receive({ kind: "command", type, data, metadata }, to);
    return to.next();
  };
  const watch = (to: Reader, data: { type: string; [name: string]: Json }) => send(to, "Sys.Watch", data);
  return { kernel, loop, reader, send, watch };
}

describe("live queries of clients", () => {
  test("[W70] readers of one query share one effect, which ends with the last of them", async () => {
    const { kernel, loop, reader, send, watch } = await opened();
    const readers = [reader(), reader(), reader()];
    const ids: Json[] = [];
    for (const one of readers) {
      const { watch: id } = (await watch(one, { type: "Board.Count" })).data as { watch: string };
      ids.push(id);
      expect(await one.data()).toMatchObject({ watch: id, answer: 0 });
    }
    expect(loop.live.counts).toEqual({ watches: 3, queries: 1 });
    const before = (await kernel.query("Board.Runs")) as number;
    await kernel.command("Board.Set", 4);
    for (const one of readers) expect(await one.data()).toMatchObject({ answer: 4 });
    expect(await kernel.query("Board.Runs")).toBe(before + 1);
    const other = reader();
    await watch(other, { type: "Board.Times", data: 2 });
    expect(await other.data()).toMatchObject({ answer: 8 });
    expect(loop.live.counts).toEqual({ watches: 4, queries: 2 });
    for (const [at, one] of readers.entries()) await send(one, "Sys.Unwatch", { watch: ids[at] as string });
    loop.disconnect(other);
    expect(loop.live.counts).toEqual({ watches: 0, queries: 0 });
    expect(kernel.health().liveNodes).toBe(0);
  });

  test("[W71] a reader that resumes with its version hears that it has the newest answer, or the newest answer", async () => {
    const { kernel, reader, watch } = await opened();
    const one = reader();
    await watch(one, { type: "Board.Half" });
    const { version } = (await one.data()) as { version: string };
    const same = reader();
    await watch(same, { type: "Board.Half", version });
    expect(await same.data()).toEqual({ watch: expect.any(String), version, same: true });
    await kernel.command("Board.Set", 1);
    await kernel.command("Board.Set", 8);
    expect(await same.data()).toMatchObject({ answer: 4 });
    const late = reader();
    await watch(late, { type: "Board.Half", version });
    expect(await late.data()).toMatchObject({ answer: 4, version: expect.not.stringMatching(version) });
  });

  test("[W71] an answer has the same version in another kernel, so that a client resumes after a restart", async () => {
    const versions: Json[] = [];
    for (const { reader, watch } of [await opened(), await opened()]) {
      const one = reader();
      await watch(one, { type: "Board.Half" });
      versions.push(((await one.data()) as { version: string }).version);
    }
    expect(versions[0]).toBe(versions[1]);
  });

  test("[W72] a reader without room skips answers, and gets the newest when it has room", async () => {
    const { kernel, reader, watch } = await opened();
    const [slow, quick] = [reader(), reader()];
    await watch(slow, { type: "Board.Count" });
    expect(await slow.data()).toMatchObject({ answer: 0 });
    await watch(quick, { type: "Board.Count" });
    expect(await quick.data()).toMatchObject({ answer: 0 });
    slow.hasRoom = false;
    for (const value of [1, 2, 3]) {
      await kernel.command("Board.Set", value);
      expect(await quick.data()).toMatchObject({ answer: value });
    }
    expect(slow.heard).toEqual([]);
    slow.makeRoom();
    expect(await slow.data()).toMatchObject({ answer: 3 });
    expect(slow.heard).toEqual([]);
  });

  test("[W73] a query that fails tells its reason, and its next answer although it equals the last one", async () => {
    const { kernel, reader, watch } = await opened();
    const one = reader();
    await watch(one, { type: "Board.Count" });
    expect(await one.data()).toMatchObject({ answer: 0 });
    await kernel.command("Board.Set", 13);
    expect(await one.next()).toMatchObject({ kind: "error", data: { code: 500, message: "13 is no count" } });
    await kernel.command("Board.Set", 0);
    expect(await one.data()).toMatchObject({ answer: 0 });
  });

  test("[W73] a query of a capability is refused as not live, and an unknown one is not found", async () => {
    const { reader, watch } = await opened();
    const one = reader();
    expect(await watch(one, { type: "Syscall.List" })).toMatchObject({
      ...{ kind: "error", data: { code: 422, reason: "NOT_LIVE" }, metadata: { refused: true } },
    });
    expect(await watch(one, { type: "Board.Nothing" })).toMatchObject({ kind: "error", data: { code: 404 } });
    expect(await watch(one, { type: "Board.Half", version: 3 })).toMatchObject({ kind: "error", data: { code: 422 } });
  });

  test("[W74] a reader with a clearance hears of nothing above it, and shares no effect with others", async () => {
    const { kernel, loop, reader, watch } = await opened();
    const [open, low, high] = [reader(), reader([]), reader(["s"])];
    for (const one of [open, high]) {
      await watch(one, { type: "Board.Secret" });
      expect(await one.data()).toMatchObject({ answer: 0 });
    }
    await watch(low, { type: "Board.Secret" });
    expect(await low.next()).toMatchObject({ kind: "error", data: { code: 403 } });
    await watch(low, { type: "Board.Count" });
    expect(await low.data()).toMatchObject({ answer: 0 });
    expect(loop.live.counts).toEqual({ watches: 4, queries: 4 });
    await kernel.command("Board.Hide", 7);
    for (const one of [open, high]) expect(await one.data()).toMatchObject({ answer: 7 });
    await kernel.command("Board.Set", 2);
    // The only message since: the secret woke no query of this reader.
    expect(await low.data()).toMatchObject({ answer: 2 });
  });

  test("[W70] a connection has a limit of live queries", async () => {
    const { reader, send, loop } = await opened();
    const one = reader();
    for (let at = 0; at < LIVE_QUERIES_MAX; at++) {
      loop.receive(
        { kind: "command", type: "Sys.Watch", data: { type: "Board.Half" }, metadata: { id: `w${at}`, timestamp: 1 } },
        one,
      );
    }
    let refused: Message | undefined;
    while (loop.live.counts.watches < LIVE_QUERIES_MAX) await one.next();
    const last = await send(one, "Sys.Watch", { type: "Board.Half" });
    for (let next = last; refused === undefined; next = await one.next()) if (next.kind === "error") refused = next;
    expect(refused).toMatchObject({ data: { code: 503, message: expect.stringContaining("Sys.Unwatch") } });
    expect(loop.live.counts).toEqual({ watches: LIVE_QUERIES_MAX, queries: 1 });
  });

  test("[W2] a watched view of the kernel is asked once for all its readers, and no more after the last of them", async () => {
    const machine = new Machine();
    const kernel = await machine.start(board, { trace: true });
    const { loop } = kernel.kernel;
    const asked = async () => {
      const { handlings } = (await machine.run(() =>
        kernel.kernel.query("Kernel.Metrics", null),
      )) as never as MetricsView;
      return handlings?.find(({ type }) => type === "Kernel.Timers")?.done ?? 0;
    };
    const readers = [new Reader("one"), new Reader("two")];
    for (const [at, reader] of readers.entries())
      loop.receive(
        {
          kind: "command",
          type: "Sys.Watch",
          data: { type: "Kernel.Timers" },
          metadata: { id: `w${at}`, timestamp: 1 },
        },
        reader,
      );
    await machine.advance(10 * VIEW_EVERY_MS);
    const [first, second] = [await asked(), readers[1]?.heard.length];
    expect(first).toBeGreaterThanOrEqual(10);
    expect(first).toBeLessThanOrEqual(12);
    // The answer to the request, and the only answer of the view: it has not changed.
    expect([readers[0]?.heard.length, second]).toEqual([2, 2]);
    loop.disconnect(readers[0] as Reader);
    await machine.advance(VIEW_EVERY_MS);
    expect(await asked()).toBeGreaterThan(first);
    loop.disconnect(readers[1] as Reader);
    await machine.advance(VIEW_EVERY_MS);
    const last = await asked();
    await machine.advance(10 * VIEW_EVERY_MS);
    expect(await asked()).toBe(last);
    machine.kill();
  });

  test("[W2] a reader with a clearance may watch no view of the kernel", async () => {
    const { reader, watch } = await opened();
    expect(await watch(reader(["s"]), { type: "Kernel.Timers" })).toMatchObject({ kind: "error", data: { code: 403 } });
  });
});
