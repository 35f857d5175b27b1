/** The app that `npm start` runs, as a user of the built package would run it: mail, tasks, totals, reminders, slow work, and kills. */
import { cpSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/client/client.ts";
import { systemHost } from "../../src/host/system-host.ts";
import type { Json } from "../../src/message/json.ts";
import { command } from "../../src/message/lineage.ts";
import { KernelProcess } from "../kernel/kernel-process.ts";
import { ROOT, scratchFolder } from "../repo/program.ts";
import { UserProject } from "./user-project.ts";

let project: UserProject;
beforeAll(async () => {
  project = await UserProject.build();
  cpSync(join(ROOT, "examples", "back-office"), join(project.folder, "back-office"), { recursive: true });
  project.write("app.ts", 'export { default } from "./back-office/app.ts";\n');
});
afterAll(() => project?.[Symbol.dispose]());

function start(folder: string): Promise<KernelProcess> {
  return KernelProcess.start(
    folder,
    join(project.folder, "app.ts"),
    join(project.packageFolder, "bin", "millrace.mjs"),
  );
}

/** Asks until the answer is as wanted; the time limit of the test ends what never is. */
async function until(client: Client, type: string, wanted: Json): Promise<void> {
  const host = systemHost();
  for (
    let found: Json = null;
    JSON.stringify(found) !== JSON.stringify(wanted);
    found = await client.query(type, null)
  ) {
    await host.yield();
  }
}

describe("the back office", () => {
  test("[K7] compiles against the built package", async () => {
    expect(await project.check()).toEqual({ code: 0, stdout: "", stderr: "" });
  });

  test("[K7] mail becomes tasks and reminders, and the totals follow", async () => {
    const kernel = await start(scratchFolder());
    await using client = await kernel.connect();
    await client.command("Inbox.Receive", { from: "Ada", subject: "Invoice 12, remind me in 0 seconds" });
    await client.command("Inbox.Receive", { from: "Bob", subject: "Are you there?" });
    await client.command("Inbox.Receive", { from: "Eve", subject: "Greetings" });
    await until(client, "Tasks.Totals", { open: 2, done: 0, hoursLeft: 0.75 });
    await until(client, "Reminders.Rung", { rung: ["Invoice 12, remind me in 0 seconds"] });
    const { tasks } = (await client.query("Tasks.List", null)) as { tasks: { taskId: string; title: string }[] };
    expect(tasks.map(({ title }) => title)).toEqual([
      "Pay Ada: Invoice 12, remind me in 0 seconds",
      "Answer Bob: Are you there?",
    ]);
    await client.command("Tasks.Done", { taskId: tasks[0]!.taskId });
    await until(client, "Tasks.Totals", { open: 1, done: 1, hoursLeft: 0.25 });
    await expect(client.command("Tasks.Done", { taskId: "none" })).rejects.toMatchObject({ code: 404 });
    await expect(client.command("Tasks.Add", { title: 7 })).rejects.toMatchObject({ code: 422 });
    await kernel.said(/totals +1 open, 1 done, 0\.25 h to go/);
    expect(await kernel.stop()).toBe(0);
    expect(kernel.complaints).toBe("");
  });

  test("[K25] slow work that was killed in the middle is done once when its request is repeated", async () => {
    const folder = scratchFolder();
    const first = await start(folder);
    await using client = await first.connect();
    const request = command(systemHost(), "Slow.Work", { title: "the report", seconds: 1 });
    const answer = client.request(request);
    await first.said(/working on the report/);
    await first.kill();
    const second = await start(folder);
    expect(await answer).toMatchObject({ kind: "reply", data: { finished: "the report" } });
    expect(await client.request(request)).toMatchObject({ kind: "reply", data: { finished: "the report" } });
    expect(await client.query("Work.List", null)).toEqual({ finished: ["the report"] });
    await second.said(/finished {3}the report/);
  });
});
