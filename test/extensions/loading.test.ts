/** From folders to extensions that run: discovery, files that may be loaded, order, and wrong ones. */
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { loadOrder } from "../../src/extensions/load-order.ts";
import { MANIFEST_BYTES_MAX } from "../../src/limits.ts";
import { scratchFolder } from "../repo/program.ts";
import { ExtensionFolder, inCode, open } from "./extension-setup.ts";

const MAIN = { "main.js": "export default {};\n" };
const manifest = (id: string, more = "") => `id: ${id}\nentrypoint: main.js\n${more}`;

describe("discovery", () => {
  test("[X7] the folders of a folder are extensions, in the order of their names", async () => {
    const folder = new ExtensionFolder();
    for (const id of ["b", "c", "a"]) folder.addLiving(id);
    folder.write("notes.txt", "no folder");
    folder.write(".hidden/manifest.yaml", "id: [");
    const { kernel, log } = await open({ extensions: folder.path });
    expect(kernel.health().extensions.map(({ id, state }) => `${id} ${state}`)).toEqual([
      "a ACTIVE",
      "b ACTIVE",
      "c ACTIVE",
    ]);
    expect(folder.told.slice(0, 3)).toEqual(["a initialize", "b initialize", "c initialize"]);
    expect(log).toEqual([]);
  });

  test("[X7] [X2] a problem of one extension is told in its status, and the others load", async () => {
    const folder = new ExtensionFolder();
    folder.addLiving("good");
    folder.add(
      "broken",
      "id: broken\nentrypoint: main.js\nevents: { subscribes: [{ topic: a, handler: shout }] }\n",
      MAIN,
    );
    folder.write("empty/readme.txt", "no manifest");
    folder.write("huge/manifest.yaml", manifest("huge", `description: ${"x".repeat(MANIFEST_BYTES_MAX)}`));
    const { states, status, log } = await open({ extensions: folder.path });
    expect(states()).toEqual({ broken: "ERROR", empty: "ERROR", good: "ACTIVE", huge: "ERROR" });
    expect(status("broken").reason).toBe(
      'manifest.yaml:3:45: events.subscribes[0].handler: must be notify_user or custom, got "shout"',
    );
    expect(status("empty").reason).toBe("manifest.yaml is not there");
    expect(status("huge").reason).toMatch(/manifest.yaml has \d+ bytes, at most 65536 fit/);
    expect(log.map(({ level, source }) => `${level} ${source}`)).toEqual(Array(3).fill("error extensions"));
  });

  test("[X7] a missing folder is refused, and no part stays open", async () => {
    const missing = join(scratchFolder(), "nowhere");
    await expect(open({ extensions: missing })).rejects.toMatchObject({ code: "EXTENSIONS_FOLDER" });
  });

  test("[X7] extensions can be named one by one, by folder and in code", async () => {
    const folder = new ExtensionFolder();
    folder.addLiving("one");
    folder.addLiving("other");
    const coded = inCode({ id: "coded", depends_on: ["one"] });
    const wrong = inCode({ id: "wrong", colour: "red" });
    const { states, status } = await open({ extensions: [coded, join(folder.path, "one"), wrong] });
    expect(states()).toEqual({ coded: "ACTIVE", one: "ACTIVE", wrong: "ERROR" });
    expect(status("wrong").reason).toMatch(/^colour: is not known here/);
  });

  test("[X8] a second extension with the same id, or with topics of the same type, is an error", async () => {
    const folder = new ExtensionFolder();
    folder.add("a", manifest("same"), MAIN);
    folder.add("b", manifest("same"), MAIN);
    folder.add("c", manifest("c", "events: { publishes: [{ topic: user.signed-up }] }"), MAIN);
    folder.add("d", manifest("d", "events: { subscribes: [{ topic: user.signed_up, handler: notify_user }] }"), MAIN);
    const { kernel } = await open({ extensions: folder.path });
    const found = kernel.health().extensions.map(({ id, state, reason }) => `${id} ${state} ${reason ?? ""}`);
    expect(found).toEqual([
      "same ACTIVE ",
      `same ERROR the id same is taken by ${join(folder.path, "a")}; give it another`,
      "c ACTIVE ",
      expect.stringMatching(/^d ERROR .*"user\.signed-up" and "user\.signed_up" are both of type User\.SignedUp/),
    ]);
  });
});

describe("entrypoints", () => {
  test("[X9] [X12] TypeScript and JavaScript; classes, objects and functions that make one", async () => {
    const folder = new ExtensionFolder();
    const told = (id: string) => `initialize() { tell("${id}"); }`;
    const add = (id: string, file: string, text: string) =>
      folder.add(id, `id: ${id}\nentrypoint: ${file}\n`, { [file.split(":")[0]!]: text });
    add("arrow", "main.js", `export default async () => ({ ${told("arrow")} });`);
    add("class", "main.ts", `export default class Main { readonly n: number = 1; ${told("class")} }`);
    add("deep", "src/deep/main.mjs", `export default { ${told("deep")} };`);
    add("function", "main.js", `export default function make() { return { ${told("function")} }; }`);
    add("named", "main.ts:Named", `export class Named { ${told("named")} }`);
    const { states, log } = await open({ extensions: folder.path });
    expect(log).toEqual([]);
    expect(new Set(Object.values(states()))).toEqual(new Set(["ACTIVE"]));
    expect(folder.told).toEqual(["arrow", "class", "deep", "function", "named"]);
  });

  test("[X9] no file outside the folder is loaded, by any kind of link", async () => {
    const folder = new ExtensionFolder();
    const outside = scratchFolder();
    const marker = join(outside, "was-here");
    const evil = `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(marker)}, ""); export default {};\n`;
    const evilFolder = new ExtensionFolder();
    evilFolder.add("whole", manifest("whole"), { "main.js": evil });
    folder.add("file-link", manifest("file-link"));
    symlinkSync(join(evilFolder.path, "whole", "main.js"), join(folder.path, "file-link", "main.js"));
    folder.add("folder-link", "id: folder-link\nentrypoint: lib/main.js\n");
    symlinkSync(join(evilFolder.path, "whole"), join(folder.path, "folder-link", "lib"));
    folder.add("directory", manifest("directory"));
    mkdirSync(join(folder.path, "directory", "main.js"));
    folder.add("missing", manifest("missing"));
    mkdirSync(join(folder.path, "manifest-link"));
    symlinkSync(join(evilFolder.path, "whole", "manifest.yaml"), join(folder.path, "manifest-link", "manifest.yaml"));
    symlinkSync(join(evilFolder.path, "whole"), join(folder.path, "whole-link"));
    folder.add("up", "id: up\nentrypoint: ../../evil.js\n");
    const { states, kernel } = await open({ extensions: folder.path });
    expect(new Set(Object.values(states()))).toEqual(new Set(["ERROR"]));
    expect(kernel.health().extensions.map(({ id, reason }) => `${id}: ${reason}`)).toEqual([
      "directory: loading: main.js is not a regular file",
      "file-link: loading: main.js is not a regular file",
      "folder-link: loading: lib/main.js leads out of the folder by a symbolic link",
      "manifest-link: manifest.yaml is not a regular file",
      "missing: loading: main.js is not there",
      expect.stringMatching(/^up: manifest\.yaml:2:13: entrypoint: must be a path inside/),
      expect.stringMatching(/^whole-link: manifest\.yaml is not loaded: its folder is a symbolic link/),
    ]);
    expect(existsSync(marker)).toBe(false);
  });

  test("[X9] [X14] a module that throws, does not parse, or has no usable export is an error of its extension", async () => {
    const folder = new ExtensionFolder();
    folder.add("good", manifest("good"), MAIN);
    folder.add("no-export", manifest("no-export"), { "main.js": "export const other = 1;\n" });
    folder.add("number", manifest("number"), { "main.js": "export default 42;\n" });
    folder.add("syntax", manifest("syntax"), { "main.js": "export default {;\n" });
    folder.add("throws", manifest("throws"), { "main.js": 'throw new Error("no key");\n' });
    folder.add("makes-throw", manifest("makes-throw"), {
      "main.js": 'export default class { constructor() { throw new Error("no luck"); } }\n',
    });
    const { status, states } = await open({ extensions: folder.path });
    const { good, ...others } = states();
    expect(good).toBe("ACTIVE");
    expect(new Set(Object.values(others))).toEqual(new Set(["ERROR"]));
    expect(status("no-export").reason).toBe('loading: main.js has no export "default"; it has other');
    expect(status("number").reason).toMatch(/must export a class, an object, or a function/);
    expect(status("throws").reason).toBe("loading: no key");
    expect(status("makes-throw").reason).toBe("loading: no luck");
  });
});

describe("order", () => {
  test("[X10] dependencies come first, otherwise the order of finding", async () => {
    const folder = new ExtensionFolder();
    folder.addLiving("a", { dependsOn: ["c"] });
    folder.addLiving("b");
    folder.addLiving("c", { dependsOn: ["d"] });
    folder.addLiving("d");
    const { kernel } = await open({ extensions: folder.path });
    await kernel.close();
    const order = ["d", "c", "a", "b"];
    const back = order.toReversed().flatMap((id) => [`${id} stop`, `${id} destroy`]);
    expect(folder.told).toEqual([
      ...order.map((id) => `${id} initialize`),
      ...order.map((id) => `${id} start`),
      ...back,
    ]);
  });

  test("[X11] missing, disabled and circular dependencies are errors of those concerned", async () => {
    const folder = new ExtensionFolder();
    folder.addLiving("lonely", { dependsOn: ["ghost"] });
    folder.addLiving("ring-a", { dependsOn: ["ring-b"] });
    folder.addLiving("ring-b", { dependsOn: ["ring-c"] });
    folder.addLiving("ring-c", { dependsOn: ["ring-a"] });
    folder.addLiving("behind", { dependsOn: ["ring-b"] });
    folder.add("off", manifest("off", "enabled: false"), MAIN);
    folder.addLiving("wants-off", { dependsOn: ["off"] });
    folder.addLiving("good");
    const { kernel, status } = await open({ extensions: folder.path });
    const reasons = Object.fromEntries(
      kernel.health().extensions.map(({ id, state, reason }) => [id, reason ?? state]),
    );
    const ring = "depends on itself: ring-b -> ring-c -> ring-a -> ring-b";
    expect(reasons).toEqual({
      behind: `depends on ring-b, which failed: ${ring}`,
      good: "ACTIVE",
      lonely: "depends on ghost, which is not there",
      off: "INACTIVE",
      "ring-a": ring,
      "ring-b": ring,
      "ring-c": ring,
      "wants-off": "depends on off, which failed: it is disabled",
    });
    expect(status("off")).toMatchObject({ enabled: false, state: "INACTIVE" });
    expect(folder.told.filter((line) => line.endsWith("initialize"))).toEqual(["good initialize"]);
  });

  test("[X10] [X11] random dependencies: each loaded extension comes after its dependencies, the others have a reason", () => {
    const ids = ["a", "b", "c", "d", "e", "f"];
    const graph = fc.array(fc.subarray([...ids, "ghost"], { maxLength: 2 }), { minLength: 6, maxLength: 6 });
    fc.assert(
      fc.property(graph, (edges) => {
        const all = ids.map((id, i) => ({ id, dependsOn: edges[i]! }));
        const { order, failures } = loadOrder(all);
        expect(new Set([...order, ...failures.keys()])).toEqual(new Set(ids));
        expect(order.length + failures.size).toBe(ids.length);
        const needs = new Map(all.map(({ id, dependsOn }) => [id, dependsOn]));
        order.forEach((id, i) => {
          for (const need of needs.get(id)!) expect(order.slice(0, i)).toContain(need);
        });
        // Each one that could be loaded is: one that fails needs another that is missing or fails too.
        for (const id of failures.keys())
          expect(needs.get(id)!.some((need) => need === "ghost" || failures.has(need))).toBe(true);
      }),
    );
  });
});
