/**
 * The program whose log cannot be copied: the first sync of the copying thread fails. It writes until the store
 * refuses, and prints the refusal. Its argument is the path of the database.
 */
import { systemHost } from "../../src/host/system-host.ts";
import { StoreError } from "../../src/store/store.ts";
import { entry } from "../store/conformance/requests.ts";
import { arm } from "./shim-orders.ts";
import { openStore } from "./store-setting.ts";

const [, , path = ""] = process.argv;
const host = systemHost();
// Commits do not sync, so the first sync is that of the copy. Only a new log syncs its head.
const store = await openStore({ path, durability: "process", checkpointThread: true });
await store.append([entry({ id: host.id() })]);
arm("sync", 1, "EIO");
console.log(await refusal());
await store.close();

async function refusal(): Promise<string> {
  for (;;) {
    try {
      const entries = Array.from({ length: 100 }, () => entry({ id: host.id() }));
      const outcome = await store.append(entries);
      if (outcome.kind === "rejected") return outcome.reason;
    } catch (error) {
      if (error instanceof StoreError) return error.code;
      throw error;
    }
  }
}
