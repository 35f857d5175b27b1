/** Valid exports of an app module, and messages about invalid ones. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadApp } from "../../src/kernel/load-app.ts";
import { scratchFolder } from "../repo/program.ts";

function module(text: string): string {
  const path = join(scratchFolder(), "app.mjs");
  writeFileSync(path, text);
  return path;
}

test("[K28] an app may export its extensions, patterns, version and clearance", async () => {
  const path = module(`
    export default {};
    export const extensions = "parts";
    export const patterns = [{ name: "p", build: () => ({}) }];
    export const version = "7";
    export const clearance = ["hr"];
  `);
  const app = await loadApp(path);
  expect(app).toMatchObject({
    capabilities: {},
    extensions: join(path, "../parts"),
    patterns: [{ name: "p" }],
    version: "7",
    clearance: ["hr"],
  });
  expect(await loadApp(module("export default {}"))).toEqual({ apps: [], capabilities: {} });
});

test.each([
  ["its exports", "export const description = 'd', inbound = {}, outbound = {}, spawn = () => ({});"],
  ["its default export", "export default { description: 'd', inbound: {}, outbound: {}, spawn: () => ({}) };"],
])(
  "[K80] a module that is one capability, as %s, is an app with that capability under the name of the file",
  async (_, text) => {
    const { capabilities } = await loadApp(module(text));
    expect(capabilities).toMatchObject({ app: { description: "d", spawn: expect.any(Function) } });
  },
);

test.each([
  ["export const x = 1", /has no app; write: export default/],
  [
    "export default {}; export const extensions = 5",
    /exports extensions that cannot be used; write: export const extensions = "extensions"/,
  ],
  ["export default {}; export const patterns = [{}]", /exports patterns that cannot be used/],
  ["export default {}; export const clearance = 'hr'", /write: export const clearance = \["name"\]/],
  [
    "export default {}; export const version = 2",
    /exports version that cannot be used; write: export const version = "1"/,
  ],
])("[K28] %s is refused with an example", async (text, message) => {
  await expect(loadApp(module(text))).rejects.toThrow(message);
});

test("[K28] a missing app file is named", async () => {
  await expect(loadApp("no-such-app.ts")).rejects.toThrow(/there is no no-such-app.ts/);
  await expect(loadApp(scratchFolder())).rejects.toThrow(/is no file; name the module of your app/);
});
