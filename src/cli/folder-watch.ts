/**
 * Reports changed files of an app below a folder. Each folder is watched instead of its files, because a watch on a
 * file ends when an editor replaces it; the runtime's recursive watch misses later changes. New folders are watched too
 * and count as a change. Hidden folders, `node_modules` and `dist` are ignored, and so are files other than code and
 * settings: an app that writes data beside itself would be restarted for ever.
 */
import { type FSWatcher, readdirSync, watch } from "node:fs";
import { join, relative } from "node:path";

const NOT_WATCHED = /^(?:node_modules|dist|\..*)$/;
const OF_THE_APP = /\.[cm]?[jt]sx?$|^millrace\.config\.|^package\.json$|^manifest\.yaml$/;

export class FolderWatch implements Disposable {
  readonly #root: string;
  readonly #changed: (file: string) => void;
  readonly #watchers = new Map<string, FSWatcher>();

  /** `changed` gets the file's path relative to the folder. */
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
    // The folder was removed; its parent is notified of that.
    watcher.on("error", () => this.#forget(folder));
    this.#watchBelow(folder);
  }

  /** Whether a new folder was found. */
  #watchBelow(folder: string): boolean {
    const below = foldersIn(folder);
    for (const known of this.#watchers.keys()) {
      // A new folder of the same name is watched again.
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
    // It was removed between the notice and the check.
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}
