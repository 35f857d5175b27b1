/**
 * Extensions of a real kernel in a process of its own, on a real file: its reports on them, and schedules when it is
 * killed in the middle.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Client } from "../../src/client/client.ts";
import { systemHost } from "../../src/host/system-host.ts";
import type { KernelHealth } from "../../src/kernel/kernel-options.ts";
import { openStoreForReading } from "../../src/kernel/open-store.ts";
import { KernelProcess } from "../kernel/kernel-process.ts";
import { scratchFolder } from "../repo/program.ts";
import { ExtensionFolder } from "./extension-setup.ts";

const MANIFEST = `
id: clock
entrypoint: main.ts
events: { publishes: [{ topic: tick }], subscribes: [{ topic: tick }] }
schedules:
  - { name: ticks, cron: "* * * * * *", emit: tick }
  - { name: work, cron: "* * * * * *" }
`;
/** A first attempt never ends: the process has to be killed in the middle of it. */
const MAIN = `
import { appendFileSync } from "node:fs";
import { join } from "node:path";
export default class Clock {
  initialize(context: { dataDir: string; subscribeEvent(topic: string, handler: (event: object) => void): void }) {
    this.folder = context.dataDir;
    context.subscribeEvent("tick", ({ payload }) => appendFileSync(join(this.folder, "heard"), payload.slotMs + "\\n"));
  }
  async executeTask(task: string, { slotMs, attempt }: { slotMs: number; attempt: number }) {
    appendFileSync(join(this.folder, "begun"), slotMs + " " + attempt + "\\n");
    if (attempt === 1) await new Promise(() => undefined);
    appendFileSync(join(this.folder, "ended"), slotMs + "\\n");
  }
}
`;

class Clock {
  readonly folder = scratchFolder();

  constructor() {
    const extensions = new ExtensionFolder();
    extensions.write("clock/manifest.yaml", MANIFEST);
    extensions.write("clock/main.ts", MAIN);
    writeFileSync(join(this.folder, "millrace.config.yaml"), `extensions: ${JSON.stringify(extensions.path)}\n`);
  }

  start(): Promise<KernelProcess> {
    return KernelProcess.start(this.folder);
  }

  lines(name: string): string[] {
    const file = join(this.folder, ".millrace", "extensions", "clock", name);
    return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
  }

  /** An event that was heard, but not yet settled when the kernel died, is heard again: only different lines count. */
  different(name: string): number {
    return new Set(this.lines(name)).size;
  }

  /** The time limit of the test ends a wait without end. */
  async until(name: string, count: number): Promise<void> {
    while (this.different(name) < count) await systemHost().yield();
  }

  async ticks(): Promise<number[]> {
    await using store = await openStoreForReading(systemHost(), join(this.folder, ".millrace", "kernel.db"));
    const rows = await store.query({ topic: "tick", limit: 1_000 });
    return rows.map(({ message }) => (message!.data as { slotMs: number }).slotMs);
  }
}

async function healthOf(client: Client): Promise<KernelHealth> {
  return (await client.query("Kernel.Health", null)) as never as KernelHealth;
}

describe("a kernel that is started", () => {
  test("[X14] [K14] [K28] [K59] prints the failed extensions and log entries from the configured level", async () => {
    const extensions = new ExtensionFolder();
    const says = 'context.logger.info("hello\\n\\u001b[2Jthere"); context.logger.debug("hidden");';
    extensions.write("noisy/manifest.yaml", "id: noisy\nentrypoint: main.js\n");
    extensions.write("noisy/main.js", `export default { initialize(context) { ${says} } };\n`);
    extensions.write("broken/manifest.yaml", "id: broken\nentrypoint: main.js\n");
    extensions.write("broken/main.js", 'export default { start() { throw new Error("no luck"); } };\n');
    const folder = scratchFolder();
    const settings = `extensions: ${JSON.stringify(extensions.path)}\nlog: info\n`;
    writeFileSync(join(folder, "millrace.config.yaml"), settings);
    const kernel = await KernelProcess.start(folder);
    expect(kernel.output).toMatch(/ {3}extensions 1 \(1 failed\)\n/);
    await using client = await kernel.connect();
    const found = (await healthOf(client)).extensions.map(({ id, state, reason }) => ({ id, state, reason }));
    expect(found).toEqual([
      { id: "broken", state: "ERROR", reason: "start: no luck" },
      { id: "noisy", state: "ACTIVE", reason: undefined },
    ]);
    expect(await kernel.stop()).toBe(0);
    // Only now is all its output here: stdout and stderr come by ways of their own.
    expect(kernel.complaints.split("\n")).toEqual([
      "millrace: info ext.noisy: hello\\n\\u001b[2Jthere",
      "millrace: error extensions: broken failed: start: no luck",
      "",
    ]);
  });
});

describe("a kernel that is killed", () => {
  test("[X43] [X44] [X46] runs the slot again in which it died, and publishes none twice", async () => {
    const clock = new Clock();
    for (let start = 1; start <= 3; start++) {
      const kernel = await clock.start();
      // The one that was broken off is done first; then the next begins, and is in the way of the kill.
      await clock.until("ended", start - 1);
      await clock.until("begun", start * 2 - 1);
      await clock.until("heard", start);
      await using client = await kernel.connect();
      expect((await healthOf(client)).extensions).toMatchObject([{ id: "clock", state: "ACTIVE" }]);
      await kernel.kill();
      expect(kernel.complaints).toBe("");
    }
    const begun = clock.lines("begun");
    const ended = clock.lines("ended");
    expect(ended).toHaveLength(2);
    expect(begun).toEqual([...ended.flatMap((slot) => [`${slot} 1`, `${slot} 2`]), expect.stringMatching(/ 1$/)]);
    expect(ended).toEqual(ended.toSorted());
    const ticks = await clock.ticks();
    expect(ticks).toEqual([...new Set(ticks)].sort((a, b) => a - b));
    expect(clock.different("heard")).toBeGreaterThanOrEqual(3);
  });
});
