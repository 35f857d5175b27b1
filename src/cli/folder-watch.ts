/**
 * Says which files of an app below a folder change. Every folder is watched by itself and not its files, because a watch on a file ends when an
 * editor puts a new file in its place, which is how many of them save; the runtime's own recursive watch misses what comes after that.
 * Folders that come later are watched too, and are a change, because files may have come with them. Hidden folders, `node_modules` and `dist` are not the app's; nor are files that are neither code nor
 * settings, because an app that wrote a log, a database or some JSON beside itself would be started again for ever.
 */
import { type FSWatcher, readdirSync, watch } from "node:fs";
import { join, relative } from "node:path";

const NOT_WATCHED = /^(?:node_modules|dist|\..*)$/;
const OF_THE_APP = /\.[cm]?[jt]sx?$|^millrace\.config\.|^package\.json$|^manifest\.yaml$/;

export class FolderWatch implements Disposable {
  readonly #root: string;
  readonly #changed: (file: string) => void;
  readonly #watchers = new Map<string, FSWatcher>();

  /** `changed` gets the file's path from the folder. */
  constructor(root: string, changed: (file: string) => void) {
    this.#root = root;
    this.#changed = changed;
    this.#watch(root);
  }

  #watch(folder: string): void {
    const watcher = watch(folder, (_kind, name) => {
      if (name === null || NOT_WATCHED.test(name)) return;
      const hasNewFolder = this.#watchBelow(folder);
      if (hasNewFolder || OF_THE_APP.test(name)) this.#changed(relative(this.#root, join(folder, name)));
    });
    this.#watchers.set(folder, watcher);
    // A folder that went away; its own is told of that.
    watcher.on("error", () => this.#forget(folder));
    this.#watchBelow(folder);
  }

  /** Whether one was there that was not watched before. */
  #watchBelow(folder: string): boolean {
    const below = foldersIn(folder);
    for (const known of this.#watchers.keys()) {
      // Should one of that name come again, it is another, and is watched anew.
      if (join(known, "..") === folder && !below.includes(known)) this.#forget(known);
    }
    const found = below.filter((one) => !this.#watchers.has(one));
    for (const one of found) this.#watch(one);
    return found.length > 0;
  }

  #forget(folder: string): void {
    this.#watchers.get(folder)?.close();
    this.#watchers.delete(folder);
  }

  [Symbol.dispose](): void {
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }
}

function foldersIn(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isDirectory() && !NOT_WATCHED.test(entry.name))
      .map(({ name }) => join(folder, name));
  } catch (error) {
    // It went away between the notice and the look.
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}
