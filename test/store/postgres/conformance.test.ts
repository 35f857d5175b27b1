import { describe, test } from "vitest";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import type { Store } from "../../../src/store/store.ts";
import { describeStore } from "../conformance/describe-store.ts";
import { type OpenStore, storeUnderTest } from "../conformance/store-under-test.ts";
import { ControlledHost } from "../controlled-host.ts";
import { Numbers, renumbered } from "./renumbered-store.ts";
import { NO_POSTGRES, SchemaPool, testServer } from "./server.ts";

const server = testServer();
const schemas = new SchemaPool(server);

const openAs =
  (wrap: (store: Store, numbers: Numbers) => Store): OpenStore =>
  async ({ changesKept, payloadBytesMax } = {}) => {
    const host = new ControlledHost();
    const schema = await schemas.take();
    const numbers = new Numbers();
    const options = () => ({
      url: server.url,
      schema,
      host,
      durability: "process" as const,
      tuning: {
        clock: "host" as const,
        ...(changesKept === undefined ? {} : { feedCommits: changesKept }),
        ...(payloadBytesMax === undefined ? {} : { payloadBytesMax }),
      },
    });
    const under = await storeUnderTest(host, {
      open: async () => wrap(await openPostgresStore(options()), numbers),
      remove: () => schemas.giveBack(schema),
    });
    return Object.assign(under, { idsAreChosen: true });
  };

if (NO_POSTGRES === undefined) {
  // The model counts rows in one order of ids, and lanes have several: `differential.test.ts` compares with the memory
  // store.
  describeStore("Postgres store", openAs(renumbered), { modelRuns: 5, hasModel: false });
} else {
  const reason = NO_POSTGRES;
  describe("Postgres store", () => {
    test.skip(reason, () => {});
  });
}
