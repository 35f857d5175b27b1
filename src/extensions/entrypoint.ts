/**
 * From a manifest's entrypoint to an extension: the module is imported and its export is made an extension. A class is
 * constructed, a function is called, an object is taken as it is. Node runs TypeScript as it stands, except under
 * `node_modules`. SPEC: X9, X12.
 */
import { pathToFileURL } from "node:url";
import { show } from "../message/problem.ts";
import { insideFile } from "./discovery.ts";
import type { Extension } from "./extension.ts";
import { ExtensionError } from "./extension-error.ts";
import type { Entrypoint } from "./manifest.ts";

/**
 * `life` counts the starts in this process: modules are cached by their URL, and a restart takes the file as it is now.
 */
export async function loadEntrypoint(folder: string, { file, exportName }: Entrypoint, life = 0): Promise<Extension> {
  const url = `${pathToFileURL(insideFile(folder, file)).href}${life === 0 ? "" : `?life=${life}`}`;
  const module = new Map(Object.entries((await import(url)) as object));
  if (!module.has(exportName))
    throw new ExtensionError(
      "EXTENSION_ENTRYPOINT",
      `${file} has no export ${show(exportName)}; it has ${[...module.keys()].join(", ") || "none"}`,
    );
  return makeExtension(module.get(exportName), file);
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
