/** Tokens from the command line, and a kernel that serves HTTP with them. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { eventsOf } from "../http/http-setup.ts";
import { KernelProcess, MAIN } from "../kernel/kernel-process.ts";
import { setup } from "./cli-setup.ts";

const SHOP_APP = join(import.meta.dirname, "..", "app", "shop-app.ts");

async function startHttp(cwd: string, port = "0"): Promise<{ kernel: KernelProcess; url: string }> {
  const kernel = await KernelProcess.start(cwd, SHOP_APP, MAIN, ["--http", port]);
  await kernel.said(/ {2}http http:\S+/);
  const [, url] = / {2}http (http:\S+)/.exec(kernel.output) as unknown as [string, string];
  return { kernel, url };
}

describe("millrace token", () => {
  test("[W27] a token is added, listed and revoked, and a wrong scope is refused before the kernel is asked", async () => {
    const { cwd, millrace, json } = setup();
    await KernelProcess.start(cwd, SHOP_APP);
    const [added] = await json("token", "add", "web", "--scope", "read,send:Shop.*", "--expires", "30d");
    expect(added).toMatchObject({ name: "web", token: expect.stringMatching(/^[\w-]{43}$/) });
    const plain = await millrace("token", "add", "other", "--scope", "read");
    expect([plain.code, plain.stdout]).toEqual([0, expect.stringMatching(/^[\w-]{43}\n$/)]);
    const listed = await json("token", "list");
    expect(listed).toMatchObject([{ name: "other" }, { name: "web", expiresAtMs: expect.any(Number) }]);
    expect(JSON.stringify(listed)).not.toContain((added as { token: string }).token);
    const wrong = await millrace("token", "add", "bad", "--scope", "write");
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('"write" is no scope')]);
    expect(await json("token", "revoke", "web")).toEqual([{ name: "web" }]);
    expect(await json("token", "list")).toMatchObject([{ name: "other" }]);
    expect((await millrace("token", "revoke", "web")).code).not.toBe(0);
  });
});

describe("millrace start --http", () => {
  test("[W37] a port with + gives way to another kernel, and a port without it is refused", async () => {
    const { url: first } = await startHttp(setup().cwd);
    const port = new URL(first).port;
    const { url: second } = await startHttp(setup().cwd, `${port}+`);
    for (const url of [first, second]) expect((await fetch(`${url}/livez`)).status).toBe(200);
    const { millrace } = setup();
    const refused = await millrace("start", SHOP_APP, "--http", port);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("choose another port")]);
    expect((await millrace("start", SHOP_APP, "--http", "+")).code).toBe(2);
  });

  test("[W58] a stream that resumes after a killed kernel loses no event and gets none twice", async () => {
    const { cwd, json } = setup();
    const first = await startHttp(cwd);
    const [{ token }] = (await json("token", "add", "web", "--scope", "read,send")) as [{ token: string }];
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const order = async (url: string, price: number) => {
      const body = JSON.stringify({ price });
      expect((await fetch(`${url}/v1/commands/Shop.Order`, { method: "POST", headers, body })).status).toBe(200);
    };
    const prices: number[] = [];
    let last = "";
    const read = async (events: AsyncGenerator<Readonly<Record<string, string>>>, count: number) => {
      for (let n = 0; n < count; n++) {
        const { value } = await events.next();
        prices.push(JSON.parse(value?.["data"]).data.price);
        last = value?.["id"];
      }
    };
    const path = "/v1/events?types=Order.Placed&from=start";
    for (const price of [1, 2, 3]) await order(first.url, price);
    await read(eventsOf(await fetch(first.url + path, { headers })), 2);
    first.kernel.signal("SIGKILL");
    await first.kernel.ended();
    const second = await startHttp(cwd);
    await order(second.url, 4);
    const resumed = eventsOf(await fetch(second.url + path, { headers: { ...headers, "last-event-id": last } }));
    await read(resumed, 2);
    expect(prices).toEqual([1, 2, 3, 4]);
    await resumed.return(undefined);
  });
});
