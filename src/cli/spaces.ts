/** The spaces of the store file that a verb looks at: that of the kernel, and those of its apps. */
import { DocumentNames } from "../kernel/document-names.ts";
import { existingDatabaseFile } from "./database-file.ts";
import type { VerbCall } from "./verb.ts";

export function spacesOf({ environment }: Pick<VerbCall, "environment">): readonly string[] {
  using names = new DocumentNames(existingDatabaseFile(undefined, environment));
  return names.spaces();
}
