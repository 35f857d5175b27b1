/** The spaces of the store that a verb looks at: that of the kernel, and those of its apps. */
import { openDocumentNames } from "../kernel/document-names.ts";
import { existingStore } from "./database-file.ts";
import type { VerbCall } from "./verb.ts";

export async function spacesOf({ environment }: Pick<VerbCall, "environment">): Promise<readonly string[]> {
  await using names = await openDocumentNames(existingStore(undefined, environment));
  return await names.spaces();
}
