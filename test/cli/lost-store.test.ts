/** A kernel that runs while its store's file is taken away. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { KernelHealth } from "../../src/kernel/kernel-options.ts";
import { setup } from "./cli-setup.ts";

test("[K62] a kernel that lost its store's file reports it in its health and to doctor, and acknowledges no command", async () => {
  const { cwd, millrace, start } = setup();
  const kernel = await start();
  const client = await kernel.connect();
  await client.command("Memory.Set", { key: "/a", value: 1 });
  rmSync(join(cwd, ".millrace", "kernel.db"));
  await expect(client.command("Memory.Set", { key: "/a", value: 2 })).rejects.toMatchObject({ code: 503 });
  const { store } = (await client.query("Kernel.Health", null)) as never as KernelHealth;
  expect(store).toMatchObject({ backend: "sqlite", trouble: expect.stringContaining("was removed while it was open") });
  const { code, stdout } = await millrace("doctor");
  expect(code).toBe(1);
  expect(stdout).toMatch(/wrong\s+kernel\s+The store stopped: .*was removed while it was open/);
  await client.close();
});
