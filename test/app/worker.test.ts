/** Commands of an app that a worker thread handles. */
import { describe, expect, test } from "vitest";
import { app, worker } from "../../src/index.ts";
import { commands } from "../../src/worker.ts";
import { openOn } from "./app-setup.ts";
import type resize from "./resize.ts";

const images = app("images", ({ cell }) => {
  const asked = cell("asked", 0);
  const thread = worker<typeof resize>(new URL("./resize.ts", import.meta.url));
  return {
    commands: {
      "Image.Resize": thread,
      "Image.Count": thread,
      "Image.Crop": thread,
      "Image.Ask": (_, tx) => {
        tx.update(asked, (n) => n + 1);
        tx.send("Image.Count");
      },
    },
    queries: { "Image.Asked": () => asked.get() },
  };
});

describe("worker", () => {
  test("[A36] [A37] its commands run in one thread, with the types of its file, beside those of the app", async () => {
    const kernel = await openOn("memory", images);
    const { width, inThread } = await kernel.command("Image.Resize", { width: 40 });
    expect([width satisfies number, inThread]).toEqual([20, true]);
    expect(await kernel.command("Image.Count")).toBe(3);
    await kernel.command("Image.Ask");
    await kernel.idle();
    expect(await kernel.query("Image.Asked")).toBe(1);
    const { actors } = kernel.health();
    expect(Object.keys(actors).filter((name) => name.startsWith("images"))).toEqual(["images", "images.resize"]);
  });

  test("[A36] an error of a worker's function is the answer of its command", async () => {
    const kernel = await openOn("memory", images);
    const cropped = await kernel.safeCommand("Image.Crop", { at: -1 });
    expect(cropped.failure).toMatchObject({ code: 500, message: "outside of the image" });
    expect(await kernel.command("Image.Crop", { at: 2 })).toBe(2);
  });

  test("[A36] [U66] a worker's command that takes longer than its timeout is answered 504, and the thread goes on", async () => {
    const slow = app("slow", () => {
      const thread = worker<typeof resize>(new URL("./resize.ts", import.meta.url), { timeout: "50 ms" });
      return { commands: { "Image.Hold": thread, "Image.Crop": thread } };
    });
    const kernel = await openOn("memory", slow);
    const held = await kernel.safeCommand("Image.Hold");
    expect(held.failure).toMatchObject({ code: 504, message: "the handler timed out after 50 ms" });
    expect(await kernel.command("Image.Crop", { at: 2 })).toBe(2);
  });

  test("[A38] in other threads commands() only returns its commands, and it refuses wrong names and handlers", () => {
    const { commands: all } = commands({ "Image.Flip": ({ x }: { x: number }) => -x });
    expect(all["Image.Flip"]({ x: 3 })).toBe(-3);
    expect(() => commands({ flip: () => 1 })).toThrow("a name is two PascalCase words");
    expect(() => commands({ "Image.Flip": 3 as never })).toThrow("must be a function");
    expect(() => worker("./resize.ts" as never)).toThrow('takes new URL("./resize.ts", import.meta.url)');
  });
});
