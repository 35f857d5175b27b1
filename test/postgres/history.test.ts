/**
 * Histories of transactions by 3 to 5 kernels on one database under faults are strictly serializable in each space, and
 * no acknowledged append is lost or there twice.
 */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { CommitRequest } from "../../src/store/commit.ts";
import { DatabaseLink } from "../../src/store/postgres/link.ts";
import { resolveOptions } from "../../src/store/postgres/options.ts";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import type { CommitListener, Store } from "../../src/store/store.ts";
import { KernelProcess, MAIN } from "../kernel/kernel-process.ts";
import { counted, type LongPart, rounds, timeoutMs } from "../portable/long-run.ts";
import { scratchFolder } from "../repo/program.ts";
import { freshSchema, NO_POSTGRES, testServer } from "../store/postgres/server.ts";
import { KernelHere } from "./kernels-here.ts";
import { anomaliesOf, type Beside, type History, makeHistory } from "./list-append.ts";
import { KEYS, SPACES } from "./lists-app.ts";

const HERE: LongPart = { name: "histories of kernels of one process", short: 4, long: 90, minutes: 3 };
const APART: LongPart = { name: "histories of kernel processes", short: 1, long: 10, minutes: 2 };

const server = testServer();

async function sql(url: string, text: string) {
  const link = await DatabaseLink.open(resolveOptions({ url }));
  try {
    return await link.query(text);
  } finally {
    await link.close();
  }
}

/** The lists at the end, read by a new store object, which also verifies the journal and the change log. */
async function finalLists(url: string, schema: string) {
  await using store = await openPostgresStore({ url, schema, readOnly: true });
  expect(await store.verify()).toMatchObject({ ok: true });
  const final = new Map<string, Map<string, readonly number[]>>();
  for (const space of SPACES) {
    const refs = KEYS.map((id) => ({ scope: "space", id }));
    const { documents } = await store.load(space, refs);
    final.set(space, new Map(documents.map(({ id, value }) => [id, (value ?? []) as number[]])));
  }
  return final;
}

async function check(seed: number, history: History, url: string, schema: string): Promise<void> {
  const final = await finalLists(url, schema);
  const appended = history.runs.flatMap(({ operations, status }) => (status === "ok" ? operations : []));
  expect(appended.filter(({ op }) => op === "append").length).toBeGreaterThan(20);
  const anomalies = anomaliesOf(history, final);
  if (anomalies.length > 0)
    console.log(JSON.stringify({ seed, history, final: [...final].map(([k, v]) => [k, [...v]]) }));
  expect({ seed, anomalies }).toEqual({ seed, anomalies: [] });
}

describe.skipIf(NO_POSTGRES !== undefined)("histories on Postgres", () => {
  test(
    "[S283] kernels under cut, stalled, one-way and slow connections give strictly serializable histories",
    async () => {
      let faults = 0;
      let runs = 0;
      for (const seed of rounds(HERE)) {
        const schema = freshSchema();
        const endBackends = async () => {
          await sql(
            server.url,
            `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE application_name = 'millrace' AND pid <> pg_backend_pid() AND query LIKE '%${schema}%'`,
          );
        };
        const kernels: KernelHere[] = [];
        const count = 3 + (seed % 3);
        for (let n = 0; n < count; n++) kernels.push(await KernelHere.open(server.url, schema, endBackends));
        const history = await makeHistory({ seed, kernels, runs: 24, atOnce: 2 });
        for (const kernel of kernels) await kernel.close();
        faults += history.faults;
        runs += history.runs.length;
        await check(seed, history, server.url, schema);
      }
      counted(runs, "checked transactions of kernels beside each other");
      counted(faults, "faults between kernels and Postgres");
    },
    timeoutMs(HERE),
  );

  test("[S282] the checker finds a store that does not validate reads", async () => {
    let found = 0;
    // Conflicts depend on the interleaving, so there are some histories until the first anomaly.
    for (let seed = 1; found === 0 && seed <= 20; seed++) {
      const schema = freshSchema();
      const nothing = async () => undefined;
      const kernels: KernelHere[] = [];
      for (let n = 0; n < 3; n++) kernels.push(await KernelHere.open(server.url, schema, nothing, withoutReads));
      const history = await makeHistory({ seed, kernels: kernels.map(withoutFaults), runs: 24, atOnce: 2 });
      for (const kernel of kernels) await kernel.close();
      found = anomaliesOf(history, await finalLists(server.url, schema)).length;
    }
    expect(found).toBeGreaterThan(0);
  });

  test(
    "[S283] kernel processes that are killed, stopped and started again give strictly serializable histories",
    async () => {
      for (const seed of rounds(APART)) {
        const database = `h${process.pid}_${seed}`;
        await sql(server.url, `CREATE DATABASE ${database}`);
        const url = new URL(server.url);
        url.pathname = `/${database}`;
        const kernels = await Promise.all(Array.from({ length: 3 }, () => KernelApart.start(url.href)));
        const history = await makeHistory({ seed, kernels, runs: 20, atOnce: 2 });
        for (const kernel of kernels) await kernel.stop();
        expect(history.unknown).toBe(0);
        await check(seed, history, url.href, "millrace");
      }
    },
    timeoutMs(APART),
  );
});

/** Commits carry no reads, so a transaction on old lists is not refused. */
function withoutReads(store: Store): Store {
  const commit = (request: CommitRequest, listener: CommitListener) =>
    store.commit({ ...request, reads: [] }, listener);
  return new Proxy(store, {
    get: (of, name) => {
      const value: unknown = Reflect.get(of, name, of);
      if (name === "commit") return commit;
      return typeof value === "function" ? value.bind(of) : value;
    },
  });
}

function withoutFaults(kernel: KernelHere): Beside {
  return { run: (type, data) => kernel.run(type, data), faults: [] };
}

/** A kernel process with a client that repeats its requests to the next one. */
class KernelApart implements Beside {
  readonly #cwd: string;
  readonly #url: string;
  #process: KernelProcess;
  #client: Awaited<ReturnType<KernelProcess["connect"]>>;

  static async start(url: string): Promise<KernelApart> {
    const cwd = scratchFolder();
    const kernel = await KernelApart.#launch(cwd, url);
    return new KernelApart(cwd, url, kernel, await kernel.connect());
  }

  static #launch(cwd: string, url: string): Promise<KernelProcess> {
    return KernelProcess.start(cwd, join(import.meta.dirname, "lists-app.ts"), MAIN, ["--store", url]);
  }

  private constructor(
    cwd: string,
    url: string,
    kernel: KernelProcess,
    client: Awaited<ReturnType<KernelProcess["connect"]>>,
  ) {
    this.#cwd = cwd;
    this.#url = url;
    this.#process = kernel;
    this.#client = client;
  }

  readonly faults: Beside["faults"] = [
    // Its requests are repeated by the client once a new process listens, and their receipts answer.
    async () => {
      await this.#process.kill();
      return async () => {
        this.#process = await KernelApart.#launch(this.#cwd, this.#url);
      };
    },
    async () => {
      this.#process.signal("SIGSTOP");
      return async () => this.#process.signal("SIGCONT");
    },
  ];

  run(type: string, data: Parameters<Beside["run"]>[1]) {
    return this.#client.command(type, data);
  }

  async stop(): Promise<void> {
    await this.#client.close();
    expect(await this.#process.stop()).toBe(0);
  }
}
