/**
 * The server side of `bench/http`, in a process of its own: a bare Hono route, which writes the rows of a command and
 * answers after COMMIT, or a kernel on a real file behind `serveHttp`. Prints its URL when it listens; ends with its
 * input.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { app, open } from "millrace";
import { serveHttp } from "millrace/http";

const [mode = "", directory = ""] = process.argv.slice(2);

console.log(mode === "bare" ? await bare() : await kernel());
process.stdin.on("end", () => process.exit(0)).resume();

async function kernel(): Promise<string> {
  const shop = app("shop", ({ cell }) => {
    const places = cell<Record<string, number>>("places", {});
    return {
      commands: {
        "Shop.Set": ({ key, value }: { key: string; value: number }, tx) => {
          tx.set(places.key(key), value);
          return { success: true };
        },
      },
    };
  });
  const opened = await open(shop, { file: join(directory, "kernel.db") });
  const { url } = await serveHttp(opened, { port: 0, authenticate: "none" });
  return `${url}/v1/commands/Shop.Set`;
}

/** Commands that come in one turn of the event loop are one commit, as in the kernel. */
async function bare(): Promise<string> {
  const database = new DatabaseSync(join(directory, "bare.db"));
  database.exec("PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = FULL");
  database.exec("CREATE TABLE change (id INTEGER PRIMARY KEY, key TEXT, value INTEGER)");
  database.exec("CREATE TABLE receipt (id TEXT PRIMARY KEY, answer TEXT) WITHOUT ROWID");
  const [begin, commit] = [database.prepare("BEGIN IMMEDIATE"), database.prepare("COMMIT")];
  const change = database.prepare("INSERT INTO change (key, value) VALUES (?, ?)");
  const receipt = database.prepare("INSERT INTO receipt VALUES (?, ?) ON CONFLICT DO NOTHING");
  const answer = JSON.stringify({ success: true });
  let waiting: { id: string; key: string; value: number; done: () => void }[] = [];
  const flush = () => {
    const batch = waiting;
    waiting = [];
    begin.run();
    for (const { id, key, value } of batch) {
      change.run(key, value);
      receipt.run(id, answer);
    }
    commit.run();
    for (const { done } of batch) done();
  };
  const routes = new Hono();
  routes.post("/set", async (context) => {
    const { key, value } = (await context.req.json()) as { key: string; value: number };
    const id = context.req.header("idempotency-key") as string;
    await new Promise<void>((done) => {
      if (waiting.length === 0) setImmediate(flush);
      waiting.push({ id, key, value, done });
    });
    return new Response(answer, { headers: { "content-type": "application/json" } });
  });
  const server = createServer(getRequestListener(routes.fetch, { overrideGlobalObjects: false }));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/set`;
}
