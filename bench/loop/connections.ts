/**
 * The cost of many open connections (SPEC N2): one request at a time, on one connection, and on each of a thousand in
 * turn.
 */
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { exchange, startServer } from "./client.ts";

const CONNECTIONS = 1_000;

/** The 99th of a hundred times with a thousand connections, divided by that with one. */
export async function measureConnections(
  directory: string,
  count: number,
  line: (index: number) => string,
): Promise<number> {
  await using server = await startServer("kernel", directory);
  let sent = 0;
  const ask = async (sockets: readonly Socket[], requests: number) => {
    const times: number[] = [];
    for (let turn = 0; turn < requests; turn++) {
      const socket = sockets[turn % sockets.length] as Socket;
      times.push(...(await exchange(socket, 1, 1, () => line(sent++))));
    }
    times.sort((a, b) => a - b);
    return times[Math.floor(times.length * 0.99)] as number;
  };
  await exchange(server.socket, count * 2, 16, () => line(sent++));
  await ask([server.socket], count / 2);
  const one = await ask([server.socket], count);
  const all: Socket[] = [];
  while (all.length < CONNECTIONS - 1) all.push(await open(directory));
  const sockets = [server.socket, ...all];
  // Each connection has sent a request before the clock starts, because the first line creates its data.
  await ask(sockets, CONNECTIONS);
  const many = await ask(sockets, count);
  for (const socket of all) socket.destroy();
  return many / one;
}

function open(directory: string): Promise<Socket> {
  const socket = connect(join(directory, "bench.sock"));
  return new Promise((resolve, reject) => socket.once("connect", () => resolve(socket)).once("error", reject));
}
