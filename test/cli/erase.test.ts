/** `millrace erase`: the text of a subject is in none of the files afterwards, and the rest is as it was. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { setup } from "./cli-setup.ts";

const PLANTED = "Planted-Text-Of-Anna";

/** How often a text stands in the files of a store. */
function hits(directory: string, text: string): number {
  return readdirSync(directory)
    .filter((name) => name.startsWith("kernel.db"))
    .map((name) => readFileSync(join(directory, name), "latin1").split(text).length - 1)
    .reduce((sum, count) => sum + count, 0);
}

async function planted() {
  const parts = setup();
  const kernel = await parts.start();
  const client = await kernel.connect();
  const set = (key: string, value: unknown) => client.command("Memory.Set", { key, value } as never);
  await set("/users/anna", { name: PLANTED, large: PLANTED.repeat(100) });
  await set("/users/joanna", { name: "another" });
  for (let n = 0; n < 5; n++) await set("/users/anna", { name: `${PLANTED} ${n}` });
  await client.emit("User.Seen", { user: "anna", text: PLANTED });
  await client.emit("User.Seen", { user: "joanna", text: "another" });
  await client.command("Memory.Delete", { key: "/users/anna" });
  await parts.untilStatus("User.Seen", "done");
  await client.close();
  await kernel.stop();
  return { ...parts, directory: join(parts.cwd, ".millrace") };
}

describe("erasing a subject", () => {
  test("[K68] no file of the store has the text of an erased subject, and the hash chain still verifies", async () => {
    const { directory, json, millrace, start } = await planted();
    await millrace("purge", "--keep", "0");
    expect(hits(directory, PLANTED)).toBeGreaterThan(0);
    const [counted] = (await json("erase", "--subject", "anna")) as { erased: boolean; rows: number }[];
    expect(counted).toMatchObject({ erased: false, documents: 1, left: { unsettled: 0, due: 0, documents: [] } });
    expect(hits(directory, PLANTED)).toBeGreaterThan(0);
    expect(await json("erase", "--subject", "anna", "--yes")).toMatchObject([{ erased: true, rows: counted?.rows }]);
    expect(hits(directory, PLANTED)).toBe(0);
    expect(await millrace("verify")).toMatchObject({ code: 0 });
    expect(await json("erase", "--subject", "anna")).toMatchObject([{ documents: 0, rows: 0, receipts: 0 }]);
    const kernel = await start();
    const client = await kernel.connect();
    expect(await client.query("Memory.List", null)).toEqual({ keys: ["/users/joanna"] });
    expect(await client.query("Memory.Get", { key: "/users/joanna" })).toEqual({ value: { name: "another" } });
    await expect(client.query("Memory.Get", { key: "/users/anna" })).rejects.toMatchObject({ code: 404 });
    await client.command("Memory.Set", { key: "/users/anna", value: "new" });
    await client.close();
    await kernel.stop();
    expect(await millrace("verify")).toMatchObject({ code: 0 });
  });

  test("[S134] verify finds a tombstone with another digest or in place of another payload", async () => {
    const { directory, json, millrace } = await planted();
    await json("erase", "--subject", "anna", "--yes");
    const database = new DatabaseSync(join(directory, "kernel.db"));
    const erased = "payload LIKE '{\"$erased\":%'";
    const { payload } = database.prepare(`SELECT payload FROM event_journal WHERE ${erased} LIMIT 1`).get() ?? {};
    const other = `SELECT max(id) FROM event_journal WHERE ${erased} AND payload <> ?1`;
    database.prepare(`UPDATE event_journal SET payload = ?1 WHERE id = (${other})`).run(payload!);
    database.close();
    expect(await millrace("verify")).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("is not what was written"),
    });
  });

  test("[K68] erase needs a subject and a stopped kernel", async () => {
    const { millrace } = setup();
    expect(await millrace("erase", "--subject", "an")).toMatchObject({ code: 2 });
  });

  test("[K123] erase works through a running kernel, and its files have no text of the subject while it runs on", async () => {
    const { directory, json, millrace, start } = await planted();
    const kernel = await start();
    const client = await kernel.connect();
    await client.command("Memory.Set", { key: "/users/anna", value: { name: PLANTED } });
    await client.command("Memory.Set", { key: "/notes", value: 1 });
    expect(hits(directory, PLANTED)).toBeGreaterThan(0);
    const [erased] = (await json("erase", "--subject", "anna", "--yes")) as { documents: number }[];
    expect(erased).toMatchObject({ erased: true, documents: 1, left: { unsettled: 0, due: 0, documents: [] } });
    expect(readdirSync(directory)).toContain("kernel.db-wal");
    expect(hits(directory, PLANTED)).toBe(0);
    await expect(client.query("Memory.Get", { key: "/users/anna" })).rejects.toMatchObject({ code: 404 });
    expect(await client.query("Memory.Get", { key: "/notes" })).toEqual({ value: 1 });
    await client.command("Memory.Set", { key: "/notes", value: 2 });
    const [audited] = await json("ls", "events", "--topic", "Sys.Audited");
    expect(JSON.stringify(audited)).not.toContain("anna");
    expect(await millrace("verify")).toMatchObject({ code: 0 });
    await client.close();
    await kernel.stop();
    expect(hits(directory, PLANTED)).toBe(0);
    expect(await millrace("verify")).toMatchObject({ code: 0 });
  });
});
