/** `backup`, `restore`, and the verdict of `verify` about copies and about rows that were removed by hand. */
import { copyFileSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { setup } from "./cli-setup.ts";

async function running() {
  const parts = setup();
  const kernel = await parts.start();
  const client = await kernel.connect();
  const set = (key: string, value: number) => client.command("Memory.Set", { key, value });
  for (let n = 0; n < 10; n++) await set(`/${n}`, n);
  return { ...parts, kernel, client, set, file: join(parts.cwd, ".millrace", "kernel.db") };
}

describe("copies of a store", () => {
  test("[K65] backup writes a sound and complete copy while the kernel runs, and overwrites no file", async () => {
    const { cwd, millrace, kernel, client, set } = await running();
    expect(await millrace("backup", "copy.db")).toMatchObject({ code: 0, stderr: "" });
    await set("/later", 1);
    expect(await millrace("verify", "copy.db")).toMatchObject({ code: 0 });
    expect(await millrace("backup", "copy.db")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("is there already"),
    });
    const rows = new DatabaseSync(join(cwd, "copy.db"))
      .prepare("SELECT id, value FROM document_json WHERE id LIKE 'memory/%'")
      .all();
    expect(rows).toHaveLength(10);
    expect(readdirSync(cwd).filter((name) => name.includes(".part"))).toEqual([]);
    await client.close();
    await kernel.stop();
  });

  test("[K66] restore replaces the store by a copy and keeps the earlier store", async () => {
    const { cwd, millrace, json, start, kernel, client, set } = await running();
    await millrace("backup", "copy.db");
    await set("/0", 100);
    expect(await millrace("restore", "copy.db", "--yes")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("running"),
    });
    await client.close();
    await kernel.stop();
    expect((await millrace("restore", "copy.db")).stdout).toContain("add --yes to do it");
    const [restored] = (await json("restore", "copy.db", "--yes")) as { movedTo: string }[];
    expect(existsSync(join(cwd, restored!.movedTo))).toBe(true);
    const again = await start();
    const asked = await again.connect();
    expect(await asked.query("Memory.Get", { key: "/0" })).toEqual({ value: 0 });
    await asked.command("Memory.Set", { key: "/0", value: 1 });
    await asked.close();
    await again.stop();
    expect(await millrace("verify")).toMatchObject({ code: 0 });
    expect(await millrace("verify", restored!.movedTo)).toMatchObject({ code: 0 });
  });

  test("[K66] a damaged copy is not restored", async () => {
    const { cwd, millrace, kernel, client } = await running();
    await millrace("backup", "copy.db");
    await client.close();
    await kernel.stop();
    const copy = new DatabaseSync(join(cwd, "copy.db"));
    copy.exec("UPDATE event_journal SET payload = '1' WHERE id = 2");
    copy.close();
    expect(await millrace("restore", "copy.db", "--yes")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("is damaged"),
    });
    expect(await millrace("verify")).toMatchObject({ code: 0 });
  });

  test("[S133] verify reports a copy of an open file without its log", async () => {
    const { cwd, millrace, kernel, client, file } = await running();
    copyFileSync(file, join(cwd, "bare.db"));
    expect(await millrace("verify", "bare.db")).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/incomplete[\s\S]*The last commits may be missing/),
    });
    expect(await millrace("verify")).toMatchObject({ code: 0 });
    await client.close();
    await kernel.stop();
    copyFileSync(file, join(cwd, "closed.db"));
    expect(await millrace("verify", "closed.db")).toMatchObject({ code: 0 });
  });

  test("[K67] rows removed by hand are explained, and the chain is valid again once they are accepted", async () => {
    const { millrace, kernel, client, file } = await running();
    await client.close();
    await kernel.stop();
    const hand = new DatabaseSync(file);
    hand.exec("DELETE FROM event_journal WHERE id IN (1, 2, 5) OR id > 18");
    hand.close();
    const { code, stdout } = await millrace("verify");
    expect([code, stdout.match(/--accept-removed/g)?.length, stdout.match(/is not what was written/g)]).toEqual([
      1,
      3,
      null,
    ]);
    expect(await millrace("verify", "--accept-removed")).toMatchObject({ code: 0 });
    expect(await millrace("verify")).toMatchObject({ code: 0 });
    const later = new DatabaseSync(file);
    later.exec("UPDATE event_journal SET payload = '1' WHERE id = 8");
    later.close();
    expect(await millrace("verify")).toMatchObject({ code: 1 });
  });
});
