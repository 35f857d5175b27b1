/**
 * The app that a kernel is started with: a module whose default export is its capabilities, or a function that makes them. It may export
 * `extensions` too, the folder of its extensions, as a path from the module.
 */
import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { KernelOptions } from "./kernel.ts";

export interface App {
  readonly capabilities: NonNullable<KernelOptions["capabilities"]>;
  readonly extensions?: string;
}

export class AppError extends Error {
  override readonly name = "AppError";
  readonly code = "APP_INVALID";
}

export async function loadApp(path: string): Promise<App> {
  const file = resolve(path);
  if (!existsSync(file)) throw new AppError(`there is no ${path}; name the module of your app`);
  const loaded: { default?: unknown; extensions?: unknown } = await import(pathToFileURL(file).href);
  const { default: app, extensions } = loaded;
  if (typeof app !== "function" && (typeof app !== "object" || app === null))
    throw new AppError(`${path} has no app; write: export default (parts) => ({ name: capability({ ... }) })`);
  const capabilities = app as App["capabilities"];
  if (extensions === undefined) return { capabilities };
  if (typeof extensions !== "string")
    throw new AppError(
      `${path} exports extensions, which must be the path of a folder: export const extensions = "extensions"`,
    );
  return { capabilities, extensions: resolve(dirname(file), extensions) };
}
