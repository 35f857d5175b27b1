/**
 * Which folders are extensions, and which files of them may be loaded: regular files inside the folder, reached without
 * any symbolic link. A problem of a folder is a finding, not an error: the other folders are found. SPEC: X7-X9.
 */
import { lstatSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { EXTENSIONS_MAX, MANIFEST_BYTES_MAX } from "../limits.ts";
import type { Extension } from "./extension.ts";
import { ExtensionError, reasonOf } from "./extension-error.ts";
import { MANIFEST_FILE, type Manifest, readManifest } from "./manifest.ts";
import { fileProblemText } from "./yaml-file.ts";

/** An extension given as code, with a manifest like `manifest.yaml` but without the entrypoint. */
export interface ExtensionInCode {
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly extension: Extension;
}

/** A folder that holds extensions; or each by itself: its folder, or its code. */
export type ExtensionSources = string | readonly (string | ExtensionInCode)[];

export type Found =
  | {
      readonly kind: "found";
      readonly manifest: Manifest;
      /** Where its module is; undefined for code. */
      readonly folder: string | undefined;
      readonly inCode?: Extension;
    }
  | {
      readonly kind: "broken";
      /** The folder's name, in place of the id that could not be read. */
      readonly id: string;
      readonly folder: string | undefined;
      readonly reason: string;
    };

export function discover(sources: ExtensionSources): Found[] {
  const each = typeof sources === "string" ? extensionFolders(sources) : sources;
  if (each.length > EXTENSIONS_MAX)
    throw new ExtensionError("EXTENSIONS_FOLDER", `there are ${each.length} extensions, at most ${EXTENSIONS_MAX} fit`);
  return withoutTwins(
    each.map((source) => (typeof source === "string" ? inFolder(resolve(source)) : fromCode(source))),
  );
}

/** Sorted, so that every start has the same order. Files beside the folders, and hidden folders, are none. */
function extensionFolders(folder: string): string[] {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw new ExtensionError("EXTENSIONS_FOLDER", `there is no folder ${folder}; make it, or leave extensions out`);
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith("."))
    .map((entry) => join(folder, entry.name))
    .sort();
}

/** The extension in a folder, as its manifest is now. */
export function inFolder(folder: string): Found {
  const id = basename(folder);
  try {
    const text = readFileSync(insideFile(folder, MANIFEST_FILE), "utf8");
    const result = readManifest(text);
    if (result.kind === "valid") return { kind: "found", folder, manifest: result.manifest };
    const reason = result.problems.map((problem) => `${MANIFEST_FILE}:${fileProblemText(problem)}`).join("; ");
    return { kind: "broken", id, folder, reason };
  } catch (thrown) {
    return { kind: "broken", id, folder, reason: reasonOf(thrown) };
  }
}

function fromCode({ manifest, extension }: ExtensionInCode): Found {
  // JSON is YAML: one check for both. The entrypoint is here already.
  const result = readManifest(JSON.stringify({ ...manifest, entrypoint: "code.js" }));
  if (result.kind === "valid")
    return { kind: "found", folder: undefined, manifest: result.manifest, inCode: extension };
  const reason = result.problems.map(({ path, problem }) => `${path}: ${problem}`).join("; ");
  return { kind: "broken", id: String(manifest["id"]), folder: undefined, reason };
}

/** The path of a file that is inside the folder and no link; throws for any other. */
export function insideFile(folder: string, file: string): string {
  const path = join(folder, file);
  const found = lstatSync(path, { throwIfNoEntry: false });
  const outside = (why: string) => new ExtensionError("EXTENSION_ENTRYPOINT", `${file} ${why}`);
  if (lstatSync(folder).isSymbolicLink())
    throw outside("is not loaded: its folder is a symbolic link; copy the folder");
  if (found === undefined) throw outside("is not there");
  if (!found.isFile()) throw outside("is not a regular file");
  if (file === MANIFEST_FILE && found.size > MANIFEST_BYTES_MAX)
    throw outside(`has ${found.size} bytes, at most ${MANIFEST_BYTES_MAX} fit`);
  // A folder on the way may be a link too.
  if (realpathSync(path) !== join(realpathSync(folder), file))
    throw outside("leads out of the folder by a symbolic link");
  return path;
}

/** Of two with one id the first is kept. */
function withoutTwins(all: readonly Found[]): Found[] {
  const owners = new Map<string, string>();
  return all.map((found) => {
    if (found.kind === "broken") return found;
    const { id } = found.manifest;
    const { folder } = found;
    const owner = owners.get(id);
    if (owner === undefined) {
      owners.set(id, folder ?? "code");
      return found;
    }
    return { kind: "broken", id, folder, reason: `the id ${id} is taken by ${owner}; give it another` };
  });
}
