/** Commands with an `Idempotency-Key` at kernels that are killed: each takes effect once, and is answered. */
import { createHash, randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { KernelProcess, LEDGER_APP, MAIN } from "../kernel/kernel-process.ts";
import { scratchFolder } from "../repo/program.ts";

const ROUNDS = 4;
const COMMANDS_A_ROUND = 40;
const OPTIONS = ["--http", "0"];
const HTTP_LINE = /http (http:\/\/\S+)\s/;

/** A kernel that is ready, and its address. */
async function started(folder: string): Promise<{ readonly kernel: KernelProcess; readonly url: string }> {
  const kernel = await KernelProcess.start(folder, LEDGER_APP, MAIN, OPTIONS);
  await kernel.said(HTTP_LINE);
  return { kernel, url: HTTP_LINE.exec(kernel.output)?.[1] as string };
}

test("[W21] a command that is repeated under its key takes effect once, although its kernel was killed", async () => {
  const folder = scratchFolder();
  const token = randomBytes(32).toString("base64url");
  let { kernel, url } = await started(folder);
  const owner = await kernel.connect();
  const digest = createHash("sha256").update(token).digest("hex");
  await owner.command("Kernel.AddToken", { name: "web", scopes: ["send", "read"], digest });
  await owner.close();

  const send = async (url: string, key: string): Promise<number | undefined> => {
    try {
      const response = await fetch(`${url}/v1/commands/Ledger.Add`, {
        method: "POST",
        body: JSON.stringify({ key, amount: 1 }),
        headers: {
          ...{ authorization: `Bearer ${token}`, "content-type": "application/json", "idempotency-key": key },
        },
      });
      await response.text();
      return response.status;
    } catch {
      // The kernel was killed: whether the command took effect is not known here.
      return undefined;
    }
  };

  const keys: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const asked = Array.from({ length: COMMANDS_A_ROUND }, (_, at) => `${round}-${at}`);
    keys.push(...asked);
    const first = url;
    let answered = 0;
    // Killed after another number of answers in each round, while the other commands are under way.
    const enough = Promise.withResolvers<void>();
    const sent = asked.map(async (key) => {
      const status = await send(first, key);
      if (status === 200 && ++answered > round * 10) enough.resolve();
    });
    await enough.promise;
    await kernel.kill();
    await Promise.all(sent);
    ({ kernel, url } = await started(folder));
    for (const key of asked) {
      // 409: the command of before the kill is still being handled.
      let status = await send(url, key);
      while (status === 409 || status === 503) status = await send(url, key);
      expect(status).toBe(200);
    }
  }
  const reader = await kernel.connect();
  const { entries, total } = (await reader.query("Ledger.Read", null)) as never as {
    readonly entries: readonly (readonly [string, number])[];
    readonly total: number;
  };
  await reader.close();
  expect(new Map(entries)).toEqual(new Map(keys.map((key) => [key, 1])));
  expect(total).toBe(keys.length);
});
