/** `requeue`, `cancel` and `purge`: on a running kernel, and on the file of a stopped one. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openSqliteStore } from "../../src/store/sqlite/open.ts";
import { setup } from "./cli-setup.ts";

type Where = "a running kernel" | "a stopped kernel's file";

/** Three failed events, handled ones, a timer; the kernel runs or does not. */
async function failedEvents(where: Where) {
  const parts = setup();
  const kernel = await parts.start();
  const client = await kernel.connect();
  for (let n = 0; n < 3; n++) await client.emit("Order.Refused", { n });
  while ((await parts.json("ls", "failures")).length < 3);
  await client.command("Shop.Order", { price: 1 });
  await parts.untilStatus("Order.Placed", "done");
  const message = { kind: "event", type: "Order.Placed", data: {} };
  const { timerId } = (await client.command("Timer.Set", { delayMs: 86_400_000, message })) as { timerId: string };
  await client.close();
  if (where !== "a running kernel") await kernel.stop();
  const failures = (await parts.json("ls", "failures")) as { id: number }[];
  return { ...parts, ids: failures.map(({ id }) => String(id)), timerId };
}

describe.for(["a running kernel", "a stopped kernel's file"] as const)("%s", (where) => {
  test("[K44] [W82] failed events are requeued by id or by a filter, counted before they are changed", async () => {
    const { cwd, millrace, json, start, ids } = await failedEvents(where);
    writeFileSync(join(cwd, "repaired"), "");
    expect(await millrace("requeue", "--all")).toEqual({
      ...{ code: 0, stderr: "", stdout: "3 failed events would be put back; add --yes to do it\n" },
    });
    expect(await json("ls", "failures")).toHaveLength(3);
    expect(await json("requeue", "--topic", "Nothing.Like", "--yes")).toEqual([
      { failed: 0, commands: 0, requeued: 0, ids: [] },
    ]);
    expect(await json("ls", "events", "--filter", "status:failed data.n>0")).toHaveLength(2);
    expect(await json("tail", "--no-follow", "--filter", "status:failed data.n:0")).toHaveLength(1);
    expect(await json("requeue", "--filter", "error~nothing")).toMatchObject([{ failed: 0 }]);
    expect((await millrace("ls", "events", "--filter", "stauts:failed")).stderr).toContain("did you mean status?");
    expect((await millrace("requeue", "--filter", "data.n:2", "--yes")).stdout).toBe("1 put back\n");
    expect(await json("requeue", "--topic", "Order.Refused", "--newer", "1d", "--yes")).toMatchObject([
      { requeued: 2 },
    ]);
    if (where !== "a running kernel") await start();
    while ((await json("ls", "events", "--topic", "Order.Refused", "--status", "done")).length < 3);
    expect(await millrace("ls", "failures")).toMatchObject({ code: 0, stdout: "no failures\n" });
    expect(await millrace("requeue", ids[0] as string)).toEqual({
      ...{
        code: 1,
        stdout: "0 put back\n",
        stderr: `millrace: no failed event, and none without a consumer: ${ids[0]}; "millrace ls events" lists them\n`,
      },
    });
  });

  test("[K159] a failed command is requeued only by its id, and a filter reports that it is left", async () => {
    const { millrace, json, start } = setup();
    const kernel = await start();
    const client = await kernel.connect();
    await expect(client.command("Shop.Order", null)).rejects.toThrow();
    await client.close();
    if (where !== "a running kernel") await kernel.stop();
    expect((await millrace("requeue", "--topic", "Shop.Order")).stdout).toBe(
      "1 failed command is left; put one back by its id, if its sender has not sent it again\n" +
        "0 failed events would be put back; add --yes to do it\n",
    );
    expect(await json("requeue", "--all", "--yes")).toEqual([{ failed: 0, commands: 1, requeued: 0, ids: [] }]);
    const [failed] = (await json("ls", "failures")) as { id: number }[];
    expect((await millrace("requeue", String(failed?.id))).stdout).toBe("1 put back\n");
  });

  test("[K44] a timer is cancelled once", async () => {
    const { millrace, timerId } = await failedEvents(where);
    expect(await millrace("cancel", timerId)).toEqual({ code: 0, stdout: "cancelled\n", stderr: "" });
    expect((await millrace("ls", "timers")).stdout).toBe("no timers\n");
    expect(await millrace("cancel", timerId)).toMatchObject({ code: 1, stdout: "" });
  });

  test("[K44] [K92] purge counts first, removes done rows, and leaves dead letters and a valid chain", async () => {
    const { millrace, json } = await failedEvents(where);
    const counted = await json("purge", "--keep", "1");
    const { removable, settled } = counted[0] as { removable: number; settled: number };
    expect(removable).toBe(settled - 1);
    expect(await json("purge", "--older", "1d")).toMatchObject([{ removable: 0, removed: 0 }]);
    expect(await json("purge", "--keep", "1", "--yes")).toEqual([{ removed: removable }]);
    // The purge itself has left an audit row.
    expect((await millrace("purge", "--keep", "2")).stdout).toBe(
      "0 of 2 done rows would be removed; add --yes to do it\n",
    );
    expect((await millrace("purge", "--keep", "0", "--yes")).stdout).toBe("2 done rows removed\n");
    expect(await json("ls", "failures")).toHaveLength(3);
    expect(await millrace("verify")).toMatchObject({ code: 0, stderr: "" });
  });

  test("[K90] dead letters are discarded by id or by a filter, with a stored reason", async () => {
    const { millrace, json, ids } = await failedEvents(where);
    const [id] = ids as [string];
    expect(await millrace("discard", id)).toMatchObject({ code: 2, stdout: "" });
    expect(await millrace("discard", id, "--reason", " ")).toMatchObject({ code: 2, stdout: "" });
    expect((await millrace("discard", id, "--reason", "sent by hand")).stdout).toBe("1 discarded\n");
    const discarded = { status: "done", outcome: "discarded", reason: "sent by hand" };
    expect(await json("show", "event", id)).toMatchObject([{ kind: "event", value: discarded }]);
    expect((await millrace("why", id)).stdout).toContain("discarded: sent by hand (failed with:");
    expect(await millrace("discard", id, "--reason", "again")).toMatchObject({ code: 1, stdout: "0 discarded\n" });
    const all = ["discard", "--topic", "Order.Refused", "--reason", "old"] as const;
    expect((await millrace(...all)).stdout).toBe("2 dead letters would be discarded; add --yes to do it\n");
    expect(await json(...all, "--yes")).toMatchObject([{ discarded: 2 }]);
    expect(await json("ls", "failures")).toEqual([]);
  });

  test("[K91] requeue, discard, cancel and purge leave audit rows with operator, time and action", async () => {
    const { millrace, json, ids, timerId } = await failedEvents(where);
    const [first, second] = ids.map(Number) as [number, number];
    await millrace("requeue", String(first));
    await millrace("discard", String(second), "--reason", "old");
    await millrace("cancel", timerId);
    await millrace("purge", "--keep", "4", "--yes");
    const rows = (await json("ls", "events", "--topic", "Sys.Audited")) as {
      createdAtMs: number;
      message: { data: { by: string; [detail: string]: unknown } };
    }[];
    const audited = rows.map(({ message }) => message.data).reverse();
    expect(audited).toMatchObject([
      { action: "requeue", ids: [first] },
      { action: "discard", ids: [second], reason: "old" },
      { action: "cancel", timerId },
      { action: "purge", keepSettled: 4 },
    ]);
    for (const { by } of audited) expect(by).toMatch(/^.+@.+$/);
    for (const { createdAtMs } of rows) expect(createdAtMs).toBeGreaterThan(0);
  });
});

describe("names of events", () => {
  test("[K93] tail, ls, requeue and discard find an event by its topic and by its message type", async () => {
    const { cwd, millrace, json } = setup();
    mkdirSync(join(cwd, ".millrace"), { mode: 0o700 });
    const store = await openSqliteStore({ path: join(cwd, ".millrace", "kernel.db") });
    const metadata = { id: "one", timestamp: 1 };
    const message = { kind: "event", type: "User.Notify", data: null, metadata } as const;
    await store.append([{ message, topic: "user.notify", source: "test", as: { status: "failed", error: "no" } }]);
    await store.close();
    for (const name of ["User.Notify", "user.notify"]) {
      expect((await millrace("tail", "--no-follow", "--topic", name)).stdout).toContain("event User.Notify");
      expect(await json("ls", "failures", "--topic", name)).toHaveLength(1);
      expect(await json("requeue", "--topic", name)).toMatchObject([{ failed: 1 }]);
      expect(await json("discard", "--topic", name, "--reason", "no")).toMatchObject([{ failed: 1 }]);
    }
  });
});

describe("calls", () => {
  test.for([
    [["requeue"], /name failed events, or --all/],
    [["requeue", "12", "--all"], /not both/],
    [["requeue", "twelve"], /"twelve" is not the id of a journal row/],
    [["requeue", "--newer", "soon"], /--newer is a time like 90s, 15m, 12h or 30d/],
    [["discard"], /name failed events, or --all/],
    [["discard", "12"], /say why: --reason/],
    [["purge"], /give a bound: --older 30d/],
    [["cancel"], /name a timer/],
    [["show"], /name the kind to show/],
    [["show", "thing", "1"], /"thing" is none of/],
    [["why"], /name a node/],
    [["dev"], /name your app/],
    [["dev", "one.ts", "two.ts"], /one word too many/],
  ] as const)("[K11] %j is a wrong call", async ([args, complaint]) => {
    const { millrace } = setup();
    const ended = await millrace(...args);
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toMatch(complaint);
  });
});
