/**
 * The server side of `bench/loop`, in a process of its own: the bare limit (parse each line, print an answer, writes
 * coalesced), a kernel on a real file, or Moleculer (given ports in place of a directory). Prints `ready` when it
 * listens; ends when its input does.
 */
import { createServer } from "node:net";
import { join } from "node:path";
import { Kernel } from "millrace/kernel";
import { systemHost } from "millrace/loop";
import { openSqliteStore } from "millrace/sqlite";
import { startBroker } from "./moleculer.ts";

const [mode = "", directory = ""] = process.argv.slice(2);
const socketPath = join(directory, "bench.sock");

if (mode === "bare") await bare();
else if (mode === "moleculer") await startBroker("server", directory.split(",").map(Number) as [number, number]);
else await kernel();
console.log("ready");
process.stdin.on("end", () => process.exit(0)).resume();

/** The minimum cost of an NDJSON request and reply. */
function bare(): Promise<void> {
  const server = createServer((client) => {
    let rest = "";
    client.setEncoding("utf8");
    client.on("error", () => client.destroy());
    client.on("data", (chunk: string) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      client.write(lines.map((line) => `${JSON.stringify(answer(JSON.parse(line)))}\n`).join(""));
    });
  });
  return new Promise((resolve) => server.listen(socketPath, resolve));
}

function answer({
  type,
  data,
  metadata,
}: {
  type: string;
  data: unknown;
  metadata: { id: string; timestamp: number };
}): object {
  return {
    kind: "reply",
    type,
    data,
    metadata: { id: metadata.id, timestamp: metadata.timestamp, causation: metadata.id },
  };
}

async function kernel(): Promise<void> {
  const host = systemHost();
  const store = await openSqliteStore({ path: join(directory, "kernel.db"), host });
  await Kernel.open({ host, store, socketPath, limits: { connectionsMax: 1_100 } });
}
