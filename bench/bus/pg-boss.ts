/** pg-boss on a Postgres of its own, woken by notifications and fetching in batches. */
import type { Json } from "../../src/message/json.ts";
import { whyPeerMissing } from "../harness/peers.ts";
import { TOPIC } from "../store/events.ts";
import { loadPeer, type Peer } from "./peer-queue.ts";
import { POSTGRES_USER, startPostgres, whyPostgresMissing } from "./services.ts";

const BATCH = 1_000;
/** More do not help: commits that notify wait for each other. */
const CONNECTIONS = 20;
/** Its shortest; a safety net beside the notifications. */
const POLL_SECONDS = 0.5;

/** As far as it is used here. */
interface PgBossModule {
  readonly PgBoss: new (options: object) => PgBoss;
}

interface PgBoss {
  on(event: "error", listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  stop(options: object): Promise<void>;
  createQueue(name: string, options: object): Promise<void>;
  send(name: string, data: Json): Promise<unknown>;
  insert(name: string, jobs: readonly { data: Json }[]): Promise<unknown>;
  work(name: string, options: object, handle: (jobs: readonly unknown[]) => Promise<void>): Promise<unknown>;
  getDb(): { executeSql(text: string): Promise<{ rows: { count: number }[] }> };
}

export const pgBoss: Peer = {
  name: "pg-boss",
  // A commit that does not wait for the flush is lost with the server's process: no match for `process`.
  durabilities: ["power"],
  commitsEach: false,
  unavailable: () => whyPeerMissing("pg-boss") ?? whyPostgresMissing(),
  open: async (scene) => {
    const { PgBoss } = await loadPeer<PgBossModule>("pg-boss");
    await using opening = new AsyncDisposableStack();
    const { socket } = opening.use(await startPostgres(scene));
    const boss = new PgBoss({
      host: socket,
      user: POSTGRES_USER,
      database: "postgres",
      max: CONNECTIONS,
      useListenNotify: true,
      supervise: false,
      schedule: false,
    });
    boss.on("error", (error) => process.stderr.write(`pg-boss: ${error.message}\n`));
    await boss.start();
    opening.defer(() => boss.stop({ graceful: false, close: true }));
    await boss.createQueue(TOPIC, { notify: true });
    const opened = opening.move();
    return {
      publish: (data) => boss.send(TOPIC, data),
      publishMany: (payloads) =>
        boss.insert(
          TOPIC,
          payloads.map((data) => ({ data })),
        ),
      work: async (onHandled) => {
        const options = {
          batchSize: BATCH,
          burstWhenBatchFull: true,
          pollingIntervalSeconds: POLL_SECONDS,
          notifyPollingIntervalSeconds: POLL_SECONDS,
        };
        await boss.work(TOPIC, options, async (jobs) => onHandled(jobs.length));
      },
      unfinished: async () => {
        const count = "SELECT count(*)::int AS count FROM pgboss.job WHERE state <> 'completed'";
        return (await boss.getDb().executeSql(count)).rows[0]!.count;
      },
      [Symbol.asyncDispose]: () => opened.disposeAsync(),
    };
  },
};
