/** `extension restart` without an extension to restart. The restart itself is tested with extensions. */
import { expect, test } from "vitest";
import { setup } from "./cli-setup.ts";

test("[K97] a kernel without extensions, a missing name and another action are refused with the remedy", async () => {
  const { millrace, start } = setup();
  expect(await millrace("extension", "restart", "inbox")).toMatchObject({ code: 3 });
  await start();
  expect(await millrace("extension", "restart", "inbox")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("this kernel has no extensions"),
  });
  expect(await millrace("extension", "restart")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("millrace ls extensions"),
  });
  expect(await millrace("extension", "stop", "inbox")).toMatchObject({ code: 2 });
});
