/**
 * How much one client slows another (SPEC N2): requests of a client with 16 in flight, alone and beside one that floods
 * the kernel with as many requests as it may have in flight.
 */
import { connect } from "node:net";
import { join } from "node:path";
import { exchange, startServer } from "./client.ts";

/** The limit of the kernel for one connection, after which it stops reading from it. */
const FLOOD_IN_FLIGHT = 256;
const IN_FLIGHT = 16;

export interface Isolation {
  /** Requests per second alone, divided by those beside the other. */
  readonly rate: number;
  /** The median time of one request at a time beside the other, divided by that alone. */
  readonly p50: number;
}

export async function measureIsolation(
  directory: string,
  count: number,
  line: (index: number) => string,
): Promise<Isolation> {
  await using server = await startServer("kernel", directory);
  const other = connect(join(directory, "bench.sock"));
  await new Promise((resolve, reject) => other.once("connect", resolve).once("error", reject));
  let sent = 0;
  const ask = async (requests: number, inFlight: number) => {
    const began = performance.now();
    const times = await exchange(server.socket, requests, inFlight, () => line(sent++));
    times.sort((a, b) => a - b);
    return { rate: requests / (performance.now() - began), p50: times[Math.floor(times.length / 2)] as number };
  };
  await ask(count / 4, IN_FLIGHT);
  const alone = { rate: (await ask(count, IN_FLIGHT)).rate, p50: (await ask(count / 20, 1)).p50 };
  let flooding = true;
  const flood = (async () => {
    for (let index = 0; flooding; index += 1_000) {
      await exchange(other, 1_000, FLOOD_IN_FLIGHT, (n) => line(-1 - index - n));
    }
  })();
  await ask(count / 4, IN_FLIGHT);
  const beside = { rate: (await ask(count, IN_FLIGHT)).rate, p50: (await ask(count / 20, 1)).p50 };
  flooding = false;
  await flood;
  other.destroy();
  return { rate: alone.rate / beside.rate, p50: beside.p50 / alone.p50 };
}
