/**
 * Detects whether the store's files were removed or replaced. SQLite does not notice: writes then succeed and are lost
 * when the process ends. So device and inode of the database and its log are compared. SPEC: S129.
 */
import { type BigIntStats, statSync } from "node:fs";
import { thrownText } from "../../message/error-data.ts";

interface Identity {
  readonly path: string;
  readonly device: bigint;
  readonly inode: bigint;
}

export class FileGuard {
  readonly #files: readonly Identity[];

  /** Records the identity of the open files. */
  constructor(databasePath: string) {
    this.#files = [databasePath, `${databasePath}-wal`].flatMap((path) => {
      const { dev, ino } = look(path) ?? {};
      return dev === undefined || ino === undefined ? [] : [{ path, device: dev, inode: ino }];
    });
  }

  /** One sentence about a removed or replaced file; undefined if there is none. */
  trouble(): string | undefined {
    for (const { path, device, inode } of this.#files) {
      let found: BigIntStats | undefined;
      try {
        found = look(path);
      } catch (error) {
        return `${path} can no longer be read: ${thrownText(error)}`;
      }
      if (found === undefined) return `${path} was removed while it was open`;
      if (found.dev !== device || found.ino !== inode) return `${path} was replaced by another file while it was open`;
    }
    return undefined;
  }
}

function look(path: string): BigIntStats | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false });
}
