/** graphile-worker on a Postgres of its own, with its local queue and with completions in batches. */
import type { Json } from "../../src/message/json.ts";
import { whyPeerMissing } from "../harness/peers.ts";
import { TOPIC } from "../store/events.ts";
import { loadPeer, type Peer } from "./peer-queue.ts";
import { POSTGRES_USER, startPostgres, whyPostgresMissing } from "./services.ts";

const BATCH = 1_000;
const CONCURRENCY = 100;
/** Its best setting here: a thousand callers published 421 events a second through 50 connections, 200 through 20. */
const CONNECTIONS = 50;

/** As far as it is used here. */
interface GraphileWorker {
  readonly Logger: new (factory: () => () => void) => object;
  makeWorkerUtils(options: object): Promise<WorkerUtils>;
  run(options: object): Promise<{ stop(): Promise<void> }>;
}

interface WorkerUtils {
  migrate(): Promise<void>;
  addJob(identifier: string, payload: Json): Promise<unknown>;
  addJobs(jobs: readonly { identifier: string; payload: Json }[]): Promise<unknown>;
  release(): Promise<void>;
}

interface Pg {
  readonly default: { readonly Pool: new (options: object) => Pool };
}

interface Pool {
  on(event: "error", listener: (error: Error) => void): void;
  on(event: "connect", listener: (client: Pick<Pool, "on">) => void): void;
  query(text: string): Promise<{ rows: { count: number }[] }>;
  end(): Promise<void>;
}

export const graphileWorker: Peer = {
  name: "graphile-worker",
  // A commit that does not wait for the flush is lost with the server's process: no match for `process`.
  durabilities: ["power"],
  commitsEach: false,
  unavailable: () => whyPeerMissing("graphile-worker") ?? whyPeerMissing("pg") ?? whyPostgresMissing(),
  open: async (scene) => {
    const { Logger, makeWorkerUtils, run } = await loadPeer<GraphileWorker>("graphile-worker");
    const { Pool } = (await loadPeer<Pg>("pg")).default;
    await using opening = new AsyncDisposableStack();
    const { socket } = opening.use(await startPostgres(scene));
    const pgPool = new Pool({ host: socket, user: POSTGRES_USER, database: "postgres", max: CONNECTIONS });
    const complain = (error: Error) => void process.stderr.write(`graphile-worker: ${error.message}\n`);
    pgPool.on("error", complain);
    pgPool.on("connect", (client) => client.on("error", complain));
    opening.defer(() => pgPool.end());
    const logger = new Logger(() => () => {});
    const utils = await makeWorkerUtils({ pgPool, logger });
    opening.defer(() => utils.release());
    await utils.migrate();
    const opened = opening.move();
    return {
      publish: (payload) => utils.addJob(TOPIC, payload),
      publishMany: (payloads) => utils.addJobs(payloads.map((payload) => ({ identifier: TOPIC, payload }))),
      work: async (onHandled) => {
        const worker = { concurrentJobs: CONCURRENCY, localQueue: { size: BATCH }, completeJobBatchDelay: 0 };
        const taskList = { [TOPIC]: () => onHandled(1) };
        const runner = await run({ pgPool, logger, taskList, preset: { worker }, noHandleSignals: true, crontab: "" });
        opened.defer(() => runner.stop());
      },
      unfinished: async () => {
        const { rows } = await pgPool.query("SELECT count(*)::int AS count FROM graphile_worker.jobs");
        return rows[0]!.count;
      },
      [Symbol.asyncDispose]: () => opened.disposeAsync(),
    };
  },
};
