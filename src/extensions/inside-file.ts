/** Files that an extension may load: regular files inside its folder, reached without symbolic links. SPEC: X9. */
import { lstatSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { MANIFEST_BYTES_MAX } from "../limits.ts";
import { ExtensionError } from "./extension-error.ts";
import { MANIFEST_FILE } from "./manifest.ts";

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
  // Whatever lies between may be a link too.
  if (realpathSync(path) !== join(realpathSync(folder), file))
    throw outside("leads out of the folder by a symbolic link");
  return path;
}
