import { describeStore } from "./conformance/describe-store.ts";
import { openSqlite } from "./open-sqlite.ts";

describeStore("SQLite store", openSqlite, { modelRuns: 60 });
