/**
 * From a manifest's entrypoint to an extension: the module is imported and its export is made an extension. A class is
 * constructed, a function is called, an object is taken as it is. Node runs TypeScript as it stands, except under
 * `node_modules`. SPEC: X9, X12.
 */
import { pathToFileURL } from "node:url";
import { show } from "../message/problem.ts";
import type { Extension } from "./extension.ts";
import { ExtensionError } from "./extension-error.ts";
import { insideFile } from "./inside-file.ts";
import type { Entrypoint } from "./manifest.ts";

export async function loadEntrypoint(folder: string, { file, exportName }: Entrypoint, life = 0): Promise<Extension> {
  const module = await importInside(folder, file, life);
  if (!module.has(exportName))
    throw new ExtensionError(
      "EXTENSION_ENTRYPOINT",
      `${file} has no export ${show(exportName)}; it has ${[...module.keys()].join(", ") || "none"}`,
    );
  return makeExtension(module.get(exportName), file);
}

/**
 * The exports. `life` counts the starts in this process: modules are cached by their URL, and a restart reads the file
 * again.
 */
export async function importInside(folder: string, file: string, life = 0): Promise<ReadonlyMap<string, unknown>> {
  const url = `${pathToFileURL(insideFile(folder, file)).href}${life === 0 ? "" : `?life=${life}`}`;
  return new Map(Object.entries((await import(url)) as object));
}

async function makeExtension(exported: unknown, file: string): Promise<Extension> {
  const extension: unknown = typeof exported === "function" ? await madeBy(exported) : exported;
  if (typeof extension === "object" && extension !== null) return extension;
  throw new ExtensionError(
    "EXTENSION_ENTRYPOINT",
    `${file} must export a class, an object, or a function that makes one; it gave ${show(extension)}`,
  );
}

/**
 * A function with a prototype is constructed; an ordinary function that returns an object gives that object either way.
 */
function madeBy(exported: { readonly prototype?: unknown }): unknown {
  return exported.prototype === undefined
    ? Reflect.apply(exported as () => unknown, undefined, [])
    : Reflect.construct(exported as never, []);
}
