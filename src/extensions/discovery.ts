/**
 * Which folders are extensions, and which files of them may be loaded: regular files inside the folder, reached without
 * any symbolic link. A problem of a folder is a finding, not an error: the other folders are found. SPEC: X7-X9.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Host } from "../host/host.ts";
import { EXTENSION_STEP_MS, EXTENSIONS_MAX } from "../limits.ts";
import { type DefinedExtension, isDefinedExtension, manifestOfHead } from "./define-extension.ts";
import { importInside } from "./entrypoint.ts";
import type { Extension } from "./extension.ts";
import { ExtensionError, extensionReason } from "./extension-error.ts";
import { insideFile } from "./inside-file.ts";
import { MANIFEST_FILE, type Manifest, readManifest } from "./manifest.ts";
import { withinTime } from "./time-limit.ts";
import { fileProblemText } from "./yaml-file.ts";

/** An extension that is code already, with the fields of a `manifest.yaml` but the entrypoint. */
export interface ExtensionInCode {
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly extension: Extension | DefinedExtension;
}

/** A folder with extensions; or each by itself: its folder, its file, its definition, or its code with a manifest. */
export type ExtensionSources = string | readonly (string | DefinedExtension | ExtensionInCode)[];

export type Found =
  | {
      readonly kind: "found";
      readonly manifest: Manifest;
      /** Its folder, or the file that it is; undefined for code. */
      readonly folder: string | undefined;
      readonly inCode?: Extension | DefinedExtension;
    }
  | {
      readonly kind: "broken";
      /** The folder's name, in place of the id that could not be read. */
      readonly id: string;
      readonly folder: string | undefined;
      readonly reason: string;
    };

export async function discover(sources: ExtensionSources, host: Host): Promise<Found[]> {
  const each = typeof sources === "string" ? extensionFolders(sources) : sources;
  if (each.length > EXTENSIONS_MAX)
    throw new ExtensionError("EXTENSIONS_FOLDER", `there are ${each.length} extensions, at most ${EXTENSIONS_MAX} fit`);
  const all: Found[] = [];
  for (const source of each) {
    if (isDefinedExtension(source)) all.push(ofDefinition(source, undefined));
    else if (typeof source !== "string") all.push(fromCode(source));
    else {
      const file = resolve(source);
      const found = await withinTime({ host, limitMs: EXTENSION_STEP_MS, what: `loading of ${source}` }, () =>
        inPlace(file),
      ).catch((thrown: unknown) => broken(file, extensionReason(thrown)));
      // A module beside the folders may be a helper of extensions.
      if (found.kind === "broken" && found.reason === NO_DEFINITION && typeof sources === "string") continue;
      all.push(found);
    }
  }
  return withoutTwins(all);
}

/**
 * Sorted, so that every start has the same order: folders, and modules by their names. Hidden folders and other files
 * are none.
 */
function extensionFolders(folder: string): string[] {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw new ExtensionError("EXTENSIONS_FOLDER", `there is no folder ${folder}; make it, or leave extensions out`);
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) =>
      entry.isDirectory() || entry.isSymbolicLink() ? !entry.name.startsWith(".") : MODULE.test(entry.name),
    )
    .map((entry) => join(folder, entry.name))
    .sort();
}

/** The extension of a folder or a file, as it is now. `life` counts the starts in this process. */
export async function inPlace(path: string, life = 0): Promise<Found> {
  if (!MODULE.test(basename(path))) return inFolder(path);
  try {
    const made = (await importInside(dirname(path), basename(path), life)).get("default");
    return isDefinedExtension(made) ? ofDefinition(made, path) : broken(path, NO_DEFINITION);
  } catch (thrown) {
    return broken(path, extensionReason(thrown));
  }
}

/** A name of a file that may be an extension; tests and declarations have a second dot. */
const MODULE = /^[a-z][a-z0-9-]{0,63}\.(?:ts|mts|js|mjs)$/;
const NO_DEFINITION = "its default export does not come from defineExtension";

function broken(path: string, reason: string): Found {
  return { kind: "broken", id: basename(path).replace(/\..*$/, ""), folder: path, reason };
}

function ofDefinition(defined: DefinedExtension, path: string | undefined): Found {
  return { kind: "found", folder: path, manifest: manifestOfHead(defined.head), inCode: defined };
}

/** The extension in a folder, as its manifest is now. */
function inFolder(folder: string): Found {
  const id = basename(folder);
  try {
    const text = readFileSync(insideFile(folder, MANIFEST_FILE), "utf8");
    const result = readManifest(text);
    if (result.kind === "valid") return { kind: "found", folder, manifest: result.manifest };
    const reason = result.problems.map((problem) => `${MANIFEST_FILE}:${fileProblemText(problem)}`).join("; ");
    return { kind: "broken", id, folder, reason };
  } catch (thrown) {
    return { kind: "broken", id, folder, reason: extensionReason(thrown) };
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
