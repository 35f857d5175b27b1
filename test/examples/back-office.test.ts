/**
 * The app that `npm start` runs, as a user of the built package would run it: mail, tasks, totals, reminders, slow
 * work, and kills.
 */
import { cpSync, existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/client/client.ts";
import { systemHost } from "../../src/host/system-host.ts";
import type { Json } from "../../src/message/json.ts";
import { commandMessage } from "../../src/message/lineage.ts";
import { KernelProcess } from "../kernel/kernel-process.ts";
import { ROOT, scratchFolder } from "../repo/program.ts";
import { UserProject } from "./user-project.ts";

let project: UserProject;
beforeAll(async () => {
  project = await UserProject.build();
  cpSync(join(ROOT, "examples", "back-office"), join(project.folder, "back-office"), { recursive: true });
  const extensions = readdirSync(join(ROOT, "examples", "back-office", "extensions"));
  const modules = ["app.ts", ...extensions.map((id) => `extensions/${id}/main.ts`)];
  // The kernel loads extensions by their manifests; the compiler is told of them here.
  project.write("check.ts", modules.map((path) => `import "./back-office/${path}";\n`).join(""));
});
afterAll(() => project?.[Symbol.dispose]());

function start(folder: string): Promise<KernelProcess> {
  return KernelProcess.start(
    folder,
    join(project.folder, "back-office", "app.ts"),
    join(project.packageFolder, "bin", "millrace.mjs"),
  );
}

/** Asks until the answer is as wanted; the time limit of the test ends the wait. */
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

  test("[K7] [X25] [X33] all its extensions run; mail may come as a file, and the agent answers questions", async () => {
    const folder = scratchFolder();
    const kernel = await start(folder);
    await using client = await kernel.connect();
    const { extensions } = (await client.query("Kernel.Health", null)) as {
      extensions: { id: string; state: string }[];
    };
    const ids = ["agent", "inbox", "office-tools", "terminal"];
    expect(extensions.map(({ id, state }) => `${id} ${state}`)).toEqual(ids.map((id) => `${id} ACTIVE`));
    const inbox = join(folder, ".millrace", "extensions", "inbox");
    writeFileSync(join(inbox, "new", "mail-1"), "From: Bob\nSubject: A meeting\u001b[2J tomorrow\n\nHello\n");
    await kernel.said(/new task +Prepare for Bob: A meeting \[2J tomorrow/);
    await until(client, "Tasks.Totals", { open: 1, done: 0, hoursLeft: 1 });
    while (!existsSync(join(inbox, "cur", "mail-1"))) await systemHost().yield();
    const answer = await client.command("Desk.Ask", { text: "What is open?" });
    expect(answer).toEqual({ answer: "1 open, 0 done, 1 h to go" });
    await kernel.said(/answer +1 open, 0 done, 1 h to go/);
    expect(kernel.complaints).toBe("");
  });

  test("[K25] [K26] mail that comes in while it is killed again and again becomes one task each", async () => {
    const folder = scratchFolder();
    let kernel = await start(folder);
    await using client = await kernel.connect();
    const host = systemHost();
    const mails = Array.from({ length: 60 }, (_, n) =>
      commandMessage(host, "Inbox.Receive", { from: "Ada", subject: `Invoice ${n}` }),
    );
    const sent = mails.map((mail) => client.request(mail));
    for (const answered of [1, 20, 40]) {
      await Promise.any(sent.slice(answered));
      await kernel.kill();
      kernel = await start(folder);
    }
    const answers = await Promise.all(sent);
    const ids = answers.map(({ data }) => (data as { mailId: string }).mailId);
    await until(client, "Tasks.Totals", { open: 60, done: 0, hoursLeft: 30 });
    const { tasks } = (await client.query("Tasks.List", null)) as { tasks: { taskId: string }[] };
    expect(tasks.map(({ taskId }) => taskId).sort()).toEqual(ids.sort());
  });

  test("[A16] slow work that was killed in the middle is done once, without its requester", async () => {
    const folder = scratchFolder();
    const first = await start(folder);
    await using client = await first.connect();
    // Slow enough for a machine that is busy with other things to be in time for the kill.
    const request = commandMessage(systemHost(), "Work.Start", { title: "the report", seconds: 5 });
    expect(await client.request(request)).toMatchObject({ kind: "reply", data: { accepted: "the report" } });
    await first.said(/working on the report/);
    await first.kill();
    const second = await start(folder);
    expect(await client.request(request)).toMatchObject({ kind: "reply", data: { accepted: "the report" } });
    await until(client, "Work.List", { finished: ["the report"] });
    await second.said(/finished {3}the report/);
  });
});
