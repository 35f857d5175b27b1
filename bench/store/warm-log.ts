/**
 * Brings a database to where it is for most of its life before the clock starts: with a write-ahead log of full length.
 * While the log's file still grows, every flush also writes the file's new length, which costs as much as the flush
 * itself and varies more; once the log was copied into the database, it is written over from its beginning and keeps
 * its length.
 */
import { statSync } from "node:fs";

/** More waves than any log takes, so that a wave without writes ends. */
const WAVES_MAX = 1000;

/** Calls `writeWave` until the engine has copied its log once, and once more, so that the log has begun anew. */
export async function warmLog(databasePath: string, writeWave: () => unknown): Promise<void> {
  const lengthBefore = statSync(databasePath).size;
  for (let wave = 0; wave < WAVES_MAX; wave++) {
    await writeWave();
    // Only copying the log writes to the database file.
    if (statSync(databasePath).size === lengthBefore) continue;
    await writeWave();
    return;
  }
  throw new Error(`${databasePath} was not written to by ${WAVES_MAX} waves`);
}
