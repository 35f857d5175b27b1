/**
 * A directory as a disk may hold it at any moment of a recorded log: written data, synced data, and the data that a
 * power loss may leave. The fault model is POSIX without the guarantees of any one file system:
 *
 * - a process kill keeps every write that returned;
 * - a power loss keeps the content of a file as of its last sync; any part of each later write and truncation may be
 * there, in any order, torn at sectors of 512 bytes;
 * - a sync that failed may have been the last chance of the writes before it: the system forgets them, and a later sync
 * succeeds;
 * - names come and go with the directory's own sync; until then a new file may be missing and a deleted one back.
 */
import type { SeededRandom } from "../../src/host/seeded-random.ts";
import type { IoRecord } from "./io-log.ts";

const SECTOR_BYTES = 512;

/** File name to content. */
export type Image = ReadonlyMap<string, Buffer>;

type Change = Extract<IoRecord, { kind: "write" | "truncate" }>;

interface Inode {
  readonly live: Content;
  readonly synced: Content;
  /** Changes since the last sync, oldest first. */
  unsynced: Change[];
}

export class DiskModel {
  readonly #live = new Map<string, Inode>();
  #durable = new Map<string, Inode>();

  apply(record: IoRecord): void {
    switch (record.kind) {
      case "mark":
        return;
      case "create": {
        if (this.#live.has(record.name)) {
          if (record.emptied) this.#change({ kind: "truncate", name: record.name, length: 0 });
        } else this.#live.set(record.name, { live: new Content(), synced: new Content(), unsynced: [] });
        return;
      }
      case "unlink":
        this.#live.delete(record.name);
        return;
      case "rename":
        this.#live.set(record.to, this.#inode(record.name));
        this.#live.delete(record.name);
        return;
      case "sync":
        if (record.name === ".") this.#durable = new Map(this.#live);
        else sync(this.#inode(record.name));
        return;
      case "failedSync":
        if (record.name !== ".") this.#inode(record.name).unsynced = [];
        return;
      default:
        this.#change(record);
    }
  }

  get hasUnsynced(): boolean {
    return this.#names.some(([, inode]) => inode.unsynced.length > 0);
  }

  /** The process was killed: all writes are there. */
  afterKill(): Image {
    return new Map(Array.from(this.#live, ([name, inode]) => [name, inode.live.bytes()]));
  }

  /** After a power loss: synced data only. */
  afterPowerLoss(): Image {
    return new Map(Array.from(this.#durable, ([name, inode]) => [name, inode.synced.bytes()]));
  }

  /** After a power loss during writes: synced data, and a random part of the rest, some of it torn. */
  afterTornPowerLoss(random: SeededRandom): Image {
    const names = random.below(2) === 0 ? this.#live : this.#durable;
    const keepOf8 = random.below(9);
    const image = new Map<string, Buffer>();
    for (const [name, inode] of names) {
      const content = inode.synced.copy();
      for (const change of inode.unsynced) {
        if (random.below(8) >= keepOf8) continue;
        if (change.kind === "write" && random.below(4) === 0) tear(content, change, random);
        else content.apply(change);
      }
      image.set(name, content.bytes());
    }
    return image;
  }

  get #names(): [string, Inode][] {
    return [...this.#live, ...this.#durable];
  }

  #change(change: Change): void {
    const inode = this.#inode(change.name);
    inode.live.apply(change);
    inode.unsynced.push(change);
  }

  #inode(name: string): Inode {
    const inode = this.#live.get(name);
    if (!inode) throw new Error(`the log changes ${name}, which was never created`);
    return inode;
  }
}

function sync(inode: Inode): void {
  for (const change of inode.unsynced) inode.synced.apply(change);
  inode.unsynced = [];
}

/** Applies some of the sectors that a write touches. */
function tear(content: Content, change: Extract<Change, { kind: "write" }>, random: SeededRandom): void {
  let at = 0;
  while (at < change.data.length) {
    const end = Math.min(change.data.length, at + SECTOR_BYTES - ((change.offset + at) % SECTOR_BYTES));
    if (random.below(2) === 0)
      content.apply({ ...change, offset: change.offset + at, data: change.data.subarray(at, end) });
    at = end;
  }
}

/** Bytes that grow; unwritten bytes read as zero. */
class Content {
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;

  apply(change: Change): void {
    if (change.kind === "truncate") {
      this.#reserve(change.length);
      this.#buffer.fill(0, Math.min(this.#length, change.length), Math.max(this.#length, change.length));
      this.#length = change.length;
      return;
    }
    const end = change.offset + change.data.length;
    this.#reserve(end);
    change.data.copy(this.#buffer, change.offset);
    this.#length = Math.max(this.#length, end);
  }

  /** A view: valid until the next change. */
  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  copy(): Content {
    const copy = new Content();
    copy.#buffer = Buffer.from(this.bytes());
    copy.#length = this.#length;
    return copy;
  }

  #reserve(length: number): void {
    if (length <= this.#buffer.length) return;
    const larger = Buffer.alloc(Math.max(length, this.#buffer.length * 2, 65_536));
    this.bytes().copy(larger);
    this.#buffer = larger;
  }
}
