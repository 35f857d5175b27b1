/**
 * A durable command over HTTP with keep-alive: a kernel behind `serveHttp`, and the limit: a bare Hono route that
 * writes the rows of the command in the same batches. Both answer after the commit is on the disk.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { fileURLToPath } from "node:url";
import type { Benchmark, Sample, Scene } from "./harness/benchmark.ts";

const RATE = "per second";
const P50 = "p50 ms";
const P99 = "p99 ms";
const COUNT = { quick: 3_000, full: 20_000, long: 200_000 };
const SINGLE = { quick: 300, full: 2_000, long: 10_000 };
const CONNECTIONS = 64;
const SERVER = fileURLToPath(new URL("./http/server.ts", import.meta.url));

export const httpBenchmark: Benchmark = {
  name: "http",
  what: "a durable command over HTTP with keep-alive, beside a bare Hono route",
  systems: [
    { name: "bare hono", role: "limit" },
    { name: "millrace", role: "ours" },
  ],
  workloads: [
    {
      group: "a durable command (FULL)",
      name: `${CONNECTIONS} connections`,
      metrics: [{ name: RATE, better: "higher", target: { of: "limit", atLeast: 0.8 } }],
      runs: { "bare hono": (scene) => many(scene, "bare"), millrace: (scene) => many(scene, "millrace") },
    },
    {
      group: "a durable command (FULL)",
      name: "one at a time",
      metrics: [
        { name: P50, better: "lower" },
        { name: P99, better: "lower" },
      ],
      runs: { "bare hono": (scene) => single(scene, "bare"), millrace: (scene) => single(scene, "millrace") },
    },
  ],
};

async function many({ directory, scale }: Scene, mode: string): Promise<Sample> {
  await using server = await start(mode, directory);
  const count = COUNT[scale];
  await send(server, count / 10, CONNECTIONS, "warm");
  const began = performance.now();
  await send(server, count, CONNECTIONS, "many");
  return { [RATE]: count / ((performance.now() - began) / 1_000) };
}

async function single({ directory, scale }: Scene, mode: string): Promise<Sample> {
  await using server = await start(mode, directory);
  await send(server, SINGLE[scale] / 5, 1, "warm");
  const times = (await send(server, SINGLE[scale], 1, "one")).sort((a, b) => a - b);
  return {
    [P50]: times[Math.floor(times.length * 0.5)] as number,
    [P99]: times[Math.floor(times.length * 0.99)] as number,
  };
}

interface Server extends AsyncDisposable {
  readonly url: URL;
  readonly agent: Agent;
}

async function start(mode: string, directory: string): Promise<Server> {
  const child = spawn(process.execPath, [SERVER, mode, directory], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "exit");
  const failed = ended.then(() => Promise.reject(new Error("the server ended before it was ready")));
  failed.catch(() => undefined);
  const [line] = (await Promise.race([once(child.stdout, "data"), failed])) as [Buffer];
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  return {
    ...{ url: new URL(String(line).trim()), agent },
    async [Symbol.asyncDispose]() {
      agent.destroy();
      child.stdin.end();
      await ended;
    },
  };
}

/** Sends commands over so many connections; how long each took. */
async function send({ url, agent }: Server, count: number, connections: number, round: string): Promise<number[]> {
  const times: number[] = [];
  let next = 0;
  const one = async () => {
    while (next < count) {
      const index = next++;
      const began = performance.now();
      await post(url, agent, `${round}-${index}`, JSON.stringify({ key: `k${index % 100}`, value: index }));
      times.push(performance.now() - began);
    }
  };
  await Promise.all(Array.from({ length: connections }, one));
  return times;
}

function post(url: URL, agent: Agent, key: string, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", "content-length": body.length, "idempotency-key": key };
    const sent = request(url, { method: "POST", agent, headers }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`answered with ${response.statusCode}`));
      response.resume().once("end", resolve);
    });
    sent.once("error", reject).end(body);
  });
}
