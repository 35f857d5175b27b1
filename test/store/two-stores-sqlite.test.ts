/** The conformance suite on two SQLite stores of one file: each write goes through one, each read through the other. */
import { describeStore } from "./conformance/describe-store.ts";
import { twoStores } from "./conformance/two-stores.ts";
import { openSqlite } from "./open-sqlite.ts";

const seed = 1;
describeStore(`two SQLite stores on one file, seed ${seed}`, twoStores(openSqlite, seed), {
  modelRuns: 5,
  isBrief: true,
});
