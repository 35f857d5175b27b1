/** The findings of `millrace doctor` about a store on Postgres. SPEC: K195. */
import { systemHost } from "../host/system-host.ts";
import { type DatabaseFacts, inspectDatabase } from "../kernel/database.ts";
import { openStoreForReading, storePlaceText } from "../kernel/open-store.ts";
import { thrownText } from "../message/error-data.ts";
import { counted } from "./journal-lines.ts";

export interface DatabaseFinding {
  readonly check: string;
  readonly ok: boolean;
  /** Neither right nor wrong. */
  readonly isNote?: boolean;
  readonly found: string;
}

/** An event that waits longer while kernels run is a sign of a missing or overloaded one. */
const LAG_MS = 60_000;

export async function checkDatabase(url: string): Promise<readonly DatabaseFinding[]> {
  try {
    await using database = await inspectDatabase(url);
    const facts = await database.facts();
    return [...databaseFindings(facts, storePlaceText(url)), await checkData(url)];
  } catch (error) {
    // A database that cannot be reached is a finding.
    return [{ check: "database", ok: false, found: `${storePlaceText(url)}: ${thrownText(error)}` }];
  }
}

export function databaseFindings(facts: DatabaseFacts, name: string): readonly DatabaseFinding[] {
  const { server, schema, bytes, kernels } = facts;
  const size = `${Math.ceil(bytes / 1_024)} KiB`;
  return [
    { check: "database", ok: true, found: `${name}, Postgres ${server}, schema version ${schema}, ${size}` },
    {
      check: "kernels",
      ok: true,
      isNote: kernels === 0,
      found: `${counted(kernels, "kernel")} on it; millrace ls kernels`,
    },
    checkLag(facts),
    checkConsumers(facts),
    checkSnapshots(facts),
    checkDeadRows(facts),
    checkStandby(facts),
  ];
}

function checkLag({ lag: { oldestMs, waiting, failed }, kernels }: DatabaseFacts): DatabaseFinding {
  const seconds = (oldestMs / 1_000).toFixed(1);
  const found = `${counted(waiting, "event")} wait, the oldest that can run for ${seconds} s; ${failed} have failed`;
  return { check: "lag", ok: kernels === 0 || oldestMs < LAG_MS, isNote: kernels === 0, found };
}

function checkConsumers({ unserved }: DatabaseFacts): DatabaseFinding {
  if (unserved.length === 0)
    return { check: "consumers", ok: true, found: "every consumer that events wait for has a kernel" };
  const named = unserved.map(
    ({ name, pattern, waiting }) => `${name} on ${pattern} (${counted(waiting, "event")} wait)`,
  );
  const remedy = 'start a kernel with it, or "millrace consumers remove NAME" if it is gone for good';
  return { check: "consumers", ok: false, found: `without a kernel: ${named.join(", ")}; ${remedy}` };
}

function checkSnapshots({ holders }: DatabaseFacts): DatabaseFinding {
  if (holders.length === 0) return { check: "snapshots", ok: true, found: "no transaction is older than a minute" };
  const named = holders.map(({ holder, ageMs }) => `${holder} for ${Math.round(ageMs / 1_000)} s`);
  const remedy = "dead rows stay and claims get slow; end it with pg_terminate_backend, or drop the slot";
  return { check: "snapshots", ok: false, found: `held by ${named.join(", ")}; ${remedy}` };
}

function checkDeadRows({ deadRows }: DatabaseFacts): DatabaseFinding {
  const named = deadRows.map(({ table, dead, live }) => `${table} ${dead} dead and ${live} live rows`);
  const ok = deadRows.length === 0;
  const found = ok ? "vacuum keeps up" : `vacuum is behind: ${named.join(", ")}; check autovacuum and old snapshots`;
  return { check: "dead rows", ok, found };
}

/** No synchronous standby is a choice of the operator, and no fault. */
function checkStandby({ replicas, synchronousCommit }: DatabaseFacts): DatabaseFinding {
  const isSynchronous = replicas.some(({ state }) => state === "sync" || state === "quorum");
  const named = replicas.map(({ name, state, lagBytes }) => `${name} ${state}, ${lagBytes} bytes behind`).join("; ");
  const list = named === "" ? "none" : named;
  if (isSynchronous && synchronousCommit !== "off") return { check: "standbys", ok: true, found: list };
  const risk = "no synchronous standby: a failover may lose acknowledged work";
  return { check: "standbys", ok: true, isNote: true, found: `${list}; ${risk}` };
}

async function checkData(url: string): Promise<DatabaseFinding> {
  await using store = await openStoreForReading(systemHost(), url);
  const { ok, rows, documents, problems } = await store.verify();
  const found = ok ? `${rows} journal rows and ${documents} documents, all as written` : problems.join("; ");
  return { check: "store", ok, found };
}
