/** Erasing a subject from a data directory's store, while no kernel runs there. SPEC: K68. */
import type { Host } from "../host/host.ts";
import type { Erased } from "../store/erase.ts";
import { eraseFromFile } from "../store/sqlite/erase-file.ts";
import type { DataDirectory } from "./data-directory.ts";
import { InstanceLock } from "./instance-lock.ts";
import { DURABILITY } from "./open-store.ts";

export type { Erased } from "../store/erase.ts";

export function findSubject(host: Host, file: string, subject: string): Erased {
  return eraseFromFile({ path: file, host, durability: DURABILITY }, subject, false);
}

export function eraseSubject(host: Host, file: string, directory: DataDirectory, subject: string): Erased {
  using _lock = InstanceLock.take(directory);
  return eraseFromFile({ path: file, host, durability: DURABILITY }, subject, true);
}
