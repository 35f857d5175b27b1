import { describe, expect, test } from "#test";
import { guarded } from "../../src/host/hook.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { simulatedProcess } from "../../src/host/simulated-process.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { ScriptedPlatform } from "./scripted-platform.ts";

describe("a hook that fails", () => {
  test("[H20] the error or rejection of a hook goes only to the host", async () => {
    const platform = new ScriptedPlatform();
    const heard: number[] = [];
    const hook = guarded(systemHost(platform), (n: number) => {
      heard.push(n);
      if (n === 1) throw new Error("at once");
      return n === 2 ? Promise.reject(new Error("later")) : n;
    });
    for (const n of [1, 2, 3]) expect(hook(n)).toBeUndefined();
    await Promise.resolve();
    expect(heard).toEqual([1, 2, 3]);
    expect(platform.complaints).toEqual([new Error("at once"), new Error("later")]);
  });

  test("[H20] the error of a hook is the error of a step in a simulation, in each of its processes", async () => {
    const world = simulatedHost(1);
    for (const host of [world, simulatedProcess(world)]) {
      let went = false;
      guarded(host, () => {
        throw new Error("of the hook");
      })();
      host.task(() => {
        went = true;
      });
      await expect(world.advance(0)).rejects.toThrow("of the hook");
      await world.advance(0);
      expect(went).toBe(true);
    }
  });

  test("[H20] the error of a hook is a line on the console of a real runtime", () => {
    const lines: unknown[][] = [];
    const { error } = console;
    console.error = (...line: unknown[]) => void lines.push(line);
    try {
      systemHost().report(new Error("of the hook"));
    } finally {
      console.error = error;
    }
    expect(lines).toEqual([["millrace: a listener failed:", new Error("of the hook")]]);
  });
});
