/** Reads the log of `shim.c`: operations on the files of one directory, and the program's own marks between them. */
import { readFileSync } from "node:fs";

export type IoRecord =
  | { readonly kind: "write"; readonly name: string; readonly offset: number; readonly data: Buffer }
  | { readonly kind: "truncate"; readonly name: string; readonly length: number }
  | { readonly kind: "create"; readonly name: string; readonly emptied: boolean }
  | { readonly kind: "unlink"; readonly name: string }
  | { readonly kind: "rename"; readonly name: string; readonly to: string }
  /** Of a file, or of the directory itself under the name ".". */
  | { readonly kind: "sync"; readonly name: string }
  | { readonly kind: "failedSync"; readonly name: string }
  | { readonly kind: "mark"; readonly text: string };

const HEAD_BYTES = 16;

export function readIoLog(path: string): IoRecord[] {
  const log = readFileSync(path);
  const records: IoRecord[] = [];
  let at = 0;
  while (at < log.length) {
    const nameStart = at + HEAD_BYTES;
    const dataStart = nameStart + log.readUInt16LE(at + 2);
    const end = dataStart + log.readUInt32LE(at + 4);
    const operation = String.fromCharCode(log[at] ?? 0);
    const name = log.toString("utf8", nameStart, dataStart);
    records.push(asRecord(operation, name, Number(log.readBigUInt64LE(at + 8)), log.subarray(dataStart, end)));
    at = end;
  }
  return records;
}

function asRecord(operation: string, name: string, offset: number, data: Buffer): IoRecord {
  switch (operation) {
    case "w":
      return { kind: "write", name, offset, data };
    case "t":
      return { kind: "truncate", name, length: offset };
    case "c":
      return { kind: "create", name, emptied: offset === 1 };
    case "u":
      return { kind: "unlink", name };
    case "r":
      return { kind: "rename", name, to: data.toString("utf8") };
    case "s":
      return { kind: "sync", name };
    case "f":
      return { kind: "failedSync", name };
    case "m":
      return { kind: "mark", text: data.toString("utf8") };
    default:
      throw new Error(`the log has a record of an unknown kind, ${JSON.stringify(operation)}`);
  }
}
