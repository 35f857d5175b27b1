/**
 * The import arrows between rooms (ARCHITECTURE.md, "Rooms"). Reads every file of `src/` as text and fails on an import
 * outside of the arrows, on a `node:` import in the core, and on a cycle of files.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const SRC = join(dirname(fileURLToPath(import.meta.url)), "..", "src");

/** Every room may import `message`, `host`, `limits.ts` and itself, and the rooms listed here. */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  message: [],
  host: [],
  store: [],
  work: ["store"],
  scheduler: ["store", "work"],
  cells: ["scheduler", "store", "work"],
  bus: ["store", "work"],
  loop: ["bus", "cells", "store", "work"],
  app: ["bus", "cells", "loop", "store", "work"],
  extensions: ["app", "bus", "cells", "loop", "work"],
  adapters: ["loop"],
  kernel: ["store", "work", "scheduler", "cells", "bus", "loop", "app", "extensions", "adapters"],
  mcp: [],
  http: ["adapters", "loop", "mcp"],
  // For its types alone.
  client: ["app"],
  react: ["app", "client"],
  cli: ["kernel", "client", "http", "mcp"],
  "testing.ts": ["cells", "kernel", "test-kernel.ts"],
  "test-kernel.ts": ["app", "kernel"],
  "cloudevents.ts": [],
  "signals.ts": ["cells", "scheduler", "store", "work"],
  "worker.ts": ["app", "loop"],
  "node.ts": ["kernel", "adapters", "store"],
  "open.ts": ["app", "kernel"],
};
const FOR_ALL = ["message", "host", "limits.ts"];

/** Rooms, or parts of one, that run wherever there is a JavaScript engine. */
const CORE = ["limits.ts", "message", "host", "store", "work", "scheduler", "cells", "bus", "loop", "app"];
const NODE_PARTS = [join("store", "sqlite"), join("store", "postgres")];

interface Import {
  readonly from: string;
  readonly to: string;
}

/** The imports of a file: those of other files as paths from `src/`, the others as written. */
function importsOf(file: string, text: string): Import[] {
  const specifiers = text.matchAll(/\b(?:from|import)\s*\(?\s*"([^"]+)"/g);
  return [...specifiers].map(([, specifier]) => {
    const target = specifier as string;
    return { from: file, to: target.startsWith(".") ? normalize(join(dirname(file), target)) : target };
  });
}

function brokenArrow({ from, to }: Import): string | undefined {
  const room = from.split(sep)[0] as string;
  if (isCore(from) && /^node:/.test(to)) return `${from} is core and imports ${to}`;
  if (isCore(from) && NODE_PARTS.some((part) => to.startsWith(part + sep))) return `${from} is core and imports ${to}`;
  if (!to.endsWith(".ts")) return undefined;
  if (to.startsWith("..")) return `${from} imports ${to}, outside src/`;
  const target = to.split(sep)[0] as string;
  if (room === "index.ts" || target === room || (FOR_ALL.includes(target) && room !== "limits.ts")) return undefined;
  if (room === "message" || room === "host") return `${from} imports ${to}`;
  return ARROWS[room]?.includes(target) ? undefined : `${from} imports ${to}`;
}

function isCore(file: string): boolean {
  return CORE.includes(file.split(sep)[0] as string) && !NODE_PARTS.some((part) => file.startsWith(part + sep));
}

function sources(): string[] {
  return readdirSync(SRC, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
}

describe("import arrows", () => {
  test("[K2] every import in src/ follows the arrows", () => {
    const imports = sources().flatMap((file) => importsOf(file, readFileSync(join(SRC, file), "utf8")));
    expect(imports.length).toBeGreaterThan(20);
    expect(imports.map(brokenArrow).filter(Boolean)).toEqual([]);
  });

  test("[K2] every room of src/ has its arrows written down", () => {
    const rooms = new Set(sources().map((file) => file.split(sep)[0] as string));
    expect([...rooms].filter((room) => !room.endsWith(".ts") && !(room in ARROWS))).toEqual([]);
  });

  test("[K2] ARCHITECTURE.md lists the rooms with the same arrows", () => {
    const page = readFileSync(join(SRC, "..", "ARCHITECTURE.md"), "utf8");
    const rows = [...page.matchAll(/^\| `(\w+)` +\|[^|]*\|([^|]*)\|[^|]*\|$/gm)];
    const rooms = rows.map(([, room]) => room as string);
    const arrows = rows.map(([, room, imports], at) => {
      const listed = (imports as string).split(",").map((name) => name.trim());
      const above = rooms.slice(0, at).filter((name) => !FOR_ALL.includes(name));
      return [room, listed.includes("all above") ? above : listed.filter((name) => name !== "")];
    });
    expect(arrows).toEqual(Object.entries(ARROWS).filter(([room]) => !room.endsWith(".ts")));
  });

  test("[K2] a broken arrow is seen", () => {
    const broken = (file: string, text: string) => importsOf(file, text).map(brokenArrow).filter(Boolean);
    expect(broken(join("store", "store.ts"), 'import { x } from "../bus/bus.ts";')).toHaveLength(1);
    expect(broken(join("message", "json.ts"), 'import type { Host } from "../store/store.ts";')).toHaveLength(1);
    expect(broken(join("bus", "bus.ts"), 'import fs from "node:fs";')).toHaveLength(1);
    expect(broken(join("bus", "bus.ts"), 'await import("../store/sqlite/index.ts");')).toHaveLength(1);
    expect(broken(join("cells", "cell.ts"), 'export { Kernel } from "../kernel/kernel.ts";')).toHaveLength(1);
    expect(broken(join("store", "sqlite", "index.ts"), 'import { DatabaseSync } from "node:sqlite";')).toEqual([]);
    expect(
      broken(join("bus", "bus.ts"), 'import { x } from "../store/store.ts"; import { y } from "../limits.ts";'),
    ).toEqual([]);
    expect(broken(join("bus", "bus.ts"), 'import { x } from "../../test/kit.ts";')).toHaveLength(1);
  });

  test("[K2] no files import each other in a circle, types included", () => {
    const imports = sources().flatMap((file) => importsOf(file, readFileSync(join(SRC, file), "utf8")));
    expect(circlesOf(imports.filter(({ to }) => to.endsWith(".ts")))).toEqual([]);
    expect(circlesOf([...pair("a.ts", "b.ts"), ...pair("b.ts", "a.ts"), ...pair("c.ts", "a.ts")])).toEqual([
      ["a.ts", "b.ts"],
    ]);
  });
});

function pair(from: string, to: string): Import[] {
  return [{ from, to }];
}

/** Groups of files each of which reaches all others of its group. */
function circlesOf(imports: readonly Import[]): string[][] {
  const graph = Map.groupBy(imports, ({ from }) => from);
  const reachedFrom = (start: string) => {
    const reached = new Set<string>();
    const open = [start];
    for (const file of open) {
      for (const { to } of graph.get(file) ?? []) {
        if (reached.has(to)) continue;
        reached.add(to);
        open.push(to);
      }
    }
    return reached;
  };
  const reached = new Map([...graph.keys()].map((file) => [file, reachedFrom(file)]));
  const inCircle = [...reached].filter(([file, files]) => files.has(file)).map(([file]) => file);
  const groups = Map.groupBy(inCircle, (file) =>
    inCircle.find((other) => reached.get(file)?.has(other) && reached.get(other)?.has(file)),
  );
  return [...groups.values()];
}
