/**
 * Loads the module that a kernel is started with. It exports apps (`app(name, …)`) as its default, in a list, or by
 * name. Its default export may also be capabilities, or a function that returns them. SPEC: A32. Further exports:
 * `extensions` (folder, relative to the module), `patterns` (pieces to resume), `version` (keeps computed values over
 * a restart) and `clearance` (of socket clients).
 */

import { existsSync, statSync } from "node:fs";
import { basename, dirname, extname, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type App, isApp } from "../app/app.ts";
import type { Pattern } from "../cells/piece.ts";
import type { Capability } from "../loop/capability.ts";
import { thrownText } from "../message/error-data.ts";
import { MillraceError } from "../message/millrace-error.ts";
import type { KernelOptions } from "./kernel-options.ts";

export interface LoadedApp extends Pick<KernelOptions, "patterns" | "version" | "clearance"> {
  readonly apps: readonly App[];
  readonly capabilities: NonNullable<KernelOptions["capabilities"]>;
  readonly extensions?: string;
}

export class AppError extends MillraceError<"APP_INVALID"> {
  override readonly name = "AppError";

  constructor(message: string, options?: ErrorOptions) {
    super("APP_INVALID", message, options);
  }
}

/** File extensions of an app's module. */
const EXTENSIONS = ["ts", "mts", "js", "mjs", "cjs"];
const EXAMPLE = 'export default app("shop", ({ cell }) => ({ commands: { … } }))';
const FACTORY_EXAMPLE = "export default (parts) => ({ name: capability({ ... }) })";

type Made = Exclude<LoadedApp["capabilities"], Factory>;
type Factory = Extract<LoadedApp["capabilities"], (parts: never) => unknown>;

export async function loadApp(path: string): Promise<LoadedApp> {
  const file = resolve(path);
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found) throw new AppError(`there is no ${path}; name the module of your app`);
  if (!found.isFile()) throw new AppError(`${path} is no file; name the module of your app, like app.ts`);
  const module = await importModule(path, file);
  const { default: app, extensions, patterns, version, clearance } = module;
  const apps = appsOf(module);
  const alone = [app, module].find(isCapability);
  if (
    apps.length === 0 &&
    alone === undefined &&
    typeof app !== "function" &&
    (typeof app !== "object" || app === null)
  )
    throw new AppError(`${path} has no app; write: ${EXAMPLE}`);
  return {
    apps,
    capabilities: apps.length > 0 ? {} : capabilitiesOf(path, file, app, alone),
    ...(isGiven(path, "extensions", extensions, isText, '"extensions"')
      ? { extensions: resolve(dirname(file), extensions) }
      : {}),
    ...(isGiven(path, "patterns", patterns, isPatterns, "[pattern(...)]") ? { patterns } : {}),
    ...(isGiven(path, "version", version, isText, '"1"') ? { version } : {}),
    ...(isGiven(path, "clearance", clearance, isNames, '["name"]') ? { clearance } : {}),
  };
}

/** The apps that a module exports: its default, a list, or by name. */
function appsOf({ default: app, ...named }: Readonly<Record<string, unknown>>): readonly App[] {
  if (isApp(app)) return [app];
  if (Array.isArray(app) && app.length > 0 && app.every(isApp)) return app;
  return app === undefined ? Object.values(named).filter(isApp) : [];
}

function capabilitiesOf(path: string, file: string, app: unknown, alone: Capability | undefined) {
  if (alone !== undefined) return { [nameOf(file)]: alone };
  return typeof app === "function" ? made(path, app as Factory) : (app as Made);
}

/** A module may be one capability, as its exports or as its default export (RFC 0032 §10.1). */
function isCapability(value: unknown): value is Capability {
  const { inbound, outbound, spawn } = (value ?? {}) as Partial<Capability>;
  return inbound !== undefined && outbound !== undefined && typeof spawn === "function";
}

/** The capability of `mail-box.ts` is `mail-box`. */
function nameOf(file: string): string {
  return basename(file, extname(file));
}

/** Checks the result of the app's function: `return` is easily forgotten. */
function made(path: string, factory: Factory): Factory {
  const checked = (capabilities: unknown): Made => {
    if (typeof capabilities === "object" && capabilities !== null) return capabilities as Made;
    throw new AppError(`the function that ${path} exports returns no capabilities; write: ${FACTORY_EXAMPLE}`);
  };
  return (parts) => {
    const given: unknown = factory(parts);
    return given instanceof Promise ? (given.then(checked) as never) : checked(given);
  };
}

/** The engine's error for invalid syntax does not name the file; its stack begins with the place, if known. */
async function importModule(path: string, file: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return await import(pathToFileURL(file).href);
  } catch (error) {
    if (isPackageMissing(error))
      throw new AppError(`${error.message}; install its dependencies first: npm install`, { cause: error });
    const meant = meantFile(error);
    if (meant !== undefined)
      throw new AppError(`${thrownText(error)}; an import names the file with its extension: ${meant}`, {
        cause: error,
      });
    if (!(error instanceof SyntaxError)) throw error;
    const [first = ""] = (error.stack ?? "").split("\n");
    const place = /:\d+$/.test(first) ? ` (${first})` : "";
    throw new AppError(`${path} cannot be read: ${error.message}${place}`, { cause: error });
  }
}

/** A missing module may also be a wrong path, which the engine's message shows. */
function isPackageMissing(error: unknown): error is Error {
  return error instanceof Error && error.message.startsWith("Cannot find package ");
}

/** A file beside the missing one that differs only in its extension. */
function meantFile(error: unknown): string | undefined {
  const { code, url } = (error ?? {}) as { code?: unknown; url?: unknown };
  if (code !== "ERR_MODULE_NOT_FOUND" || typeof url !== "string" || !url.startsWith("file:")) return undefined;
  const missing = fileURLToPath(url);
  const stem = missing.replace(/\.[cm]?js$/, "");
  const found = EXTENSIONS.map((extension) => `${stem}.${extension}`).find((file) => existsSync(file));
  return found && basename(found);
}

/** Whether an export exists; an invalid one is refused with an example. */
function isGiven<T>(
  path: string,
  name: string,
  value: unknown,
  is: (value: unknown) => value is T,
  example: string,
): value is T {
  if (value === undefined) return false;
  if (is(value)) return true;
  throw new AppError(`${path} exports ${name} that cannot be used; write: export const ${name} = ${example}`);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every(isText);
}

function isPatterns(value: unknown): value is readonly Pattern[] {
  return Array.isArray(value) && value.every((one) => typeof one?.name === "string" && typeof one.build === "function");
}
