/** The app that a kernel is started with: a module whose default export is its capabilities, or a function that makes them. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { KernelOptions } from "./kernel.ts";

export type App = NonNullable<KernelOptions["capabilities"]>;

export class AppError extends Error {
  override readonly name = "AppError";
  readonly code = "APP_INVALID";
}

export async function loadApp(path: string): Promise<App> {
  const file = resolve(path);
  if (!existsSync(file)) throw new AppError(`there is no ${path}; name the module of your app`);
  const loaded: { default?: unknown } = await import(pathToFileURL(file).href);
  const { default: app } = loaded;
  if (typeof app === "function" || (typeof app === "object" && app !== null)) return app as App;
  throw new AppError(`${path} has no app; write: export default (parts) => ({ name: capability({ ... }) })`);
}
