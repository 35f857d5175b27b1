/** Commands and events of capabilities on a Postgres database. */
import { ENTRY_POINTS } from "../work/entry-points.ts";
import { describeOnPostgres } from "./entry-points-on-postgres.ts";

describeOnPostgres(ENTRY_POINTS.slice(0, 3));
