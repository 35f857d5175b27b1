/** `requeue`, `cancel` and `purge`: on a running kernel, and on the file of a stopped one. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
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
  test("[K44] failed events are put back by id, or all that a filter finds, counted before they are touched", async () => {
    const { cwd, millrace, json, start, ids } = await failedEvents(where);
    writeFileSync(join(cwd, "repaired"), "");
    expect(await millrace("requeue", "--all")).toEqual({
      ...{ code: 0, stderr: "", stdout: "3 failed events would be put back; add --yes to do it\n" },
    });
    expect(await json("ls", "failures")).toHaveLength(3);
    expect(await json("requeue", "--topic", "Nothing.Like", "--yes")).toEqual([
      { failed: 0, commands: 0, requeued: 0, ids: [] },
    ]);
    expect((await millrace("requeue", ids[0] as string)).stdout).toBe("1 put back\n");
    expect(await json("requeue", "--topic", "Order.Refused", "--newer", "1d", "--yes")).toMatchObject([
      { requeued: 2 },
    ]);
    if (where !== "a running kernel") await start();
    while ((await json("ls", "events", "--topic", "Order.Refused", "--status", "done")).length < 3);
    expect(await millrace("ls", "failures")).toMatchObject({ code: 0, stdout: "no failures\n" });
    expect(await millrace("requeue", ids[0] as string)).toEqual({
      ...{ code: 1, stdout: "0 put back\n", stderr: `millrace: not failed, so left as they are: ${ids[0]}\n` },
    });
  });

  test("[K44] a failed command is put back by its id alone, and a filter says that it is left", async () => {
    const { millrace, json, start } = setup();
    const kernel = await start();
    const client = await kernel.connect();
    await expect(client.command("Shop.Order", null)).rejects.toThrow();
    await client.close();
    if (where !== "a running kernel") await kernel.stop();
    expect((await millrace("requeue", "--topic", "Shop.Order")).stdout).toBe(
      "1 failed command is left; put one back by its id, if whoever sent it has not sent it again\n" +
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

  test("[K44] purge counts first, removes handled rows, keeps dead letters, and leaves the chain whole", async () => {
    const { millrace, json } = await failedEvents(where);
    const counted = await json("purge", "--keep", "1");
    const { removable, settled } = counted[0] as { removable: number; settled: number };
    expect(removable).toBe(settled - 1);
    expect(await json("purge", "--older", "1d")).toMatchObject([{ removable: 0, removed: 0 }]);
    expect(await json("purge", "--keep", "1", "--yes")).toEqual([{ removed: removable }]);
    expect(await json("ls", "events", "--status", "done")).toHaveLength(1);
    expect(await json("ls", "failures")).toHaveLength(3);
    expect((await millrace("purge", "--keep", "1")).stdout).toBe(
      "0 of 1 settled row would be removed; add --yes to do it\n",
    );
    expect((await millrace("purge", "--keep", "0", "--yes")).stdout).toBe("1 settled row removed\n");
    expect(await millrace("verify")).toMatchObject({ code: 0, stderr: "" });
  });
});

describe("calls", () => {
  test.for([
    [["requeue"], /name failed events, or --all/],
    [["requeue", "12", "--all"], /not both/],
    [["requeue", "twelve"], /"twelve" is not the id of a journal row/],
    [["requeue", "--newer", "soon"], /--newer is a time like 90s, 15m, 12h or 30d/],
    [["purge"], /say what may go: --older 30d/],
    [["cancel"], /name a timer/],
    [["show"], /name what to show/],
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
