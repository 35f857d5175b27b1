/**
 * The connection of a verb to the kernel of this directory, and its options.
 */

import { text } from "node:stream/consumers";
import { Client } from "../client/client.ts";
import { pause } from "../host/pause.ts";
import { systemHost } from "../host/system-host.ts";
import { dataDirectory } from "../kernel/data-directory.ts";
import type { GraphView } from "../kernel/inspect-capability.ts";
import { InstanceLock } from "../kernel/instance-lock.ts";
import { type Failure, isFailure, thrownText } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { readNumber, UsageError, type VerbCall } from "./verb.ts";

/** A day: no user waits longer at a terminal. */
const TIMEOUT_MS_MAX = 86_400_000;

/** Wait for a kernel that was just started and has not taken its directory yet. */
const STARTED_MS = 1_000;
/** Wait for a kernel that has taken its directory and opens its socket after the boot. */
const BOOTING_MS = 30_000;
const RETRY_MS = 50;

/** Connects to the kernel of this directory. Waits for one that is starting. */
export async function connectKernel(call: VerbCall): Promise<Client> {
  const host = systemHost();
  const startMs = host.monotonic();
  let isWaiting = false;
  for (;;) {
    try {
      return await connectOnce(call);
    } catch (error) {
      if (!isNotReachable(error) || !isAbsent(error.cause)) throw error;
      const isBooting = isTaken(call);
      const waitedMs = host.monotonic() - startMs;
      if (waitedMs >= (isBooting ? BOOTING_MS : STARTED_MS)) throw error;
      if (isBooting && !isWaiting) call.terminal.complain("a kernel is starting here; waiting for it");
      isWaiting ||= isBooting;
      await pause(host, RETRY_MS);
    }
  }
}

/** Whether a process has taken the directory. An unreadable lock counts as none; `start` and `doctor` report it. */
export function isTaken({ environment }: VerbCall): boolean {
  try {
    return InstanceLock.isHeld(dataDirectory(environment));
  } catch {
    return false;
  }
}

function isNotReachable(error: unknown): error is Failure {
  return isFailure(error, "NOT_REACHABLE");
}

/** There is no socket, or no process listens on it. */
function isAbsent(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && (cause.code === "ENOENT" || cause.code === "ECONNREFUSED");
}

function connectOnce({ environment, options, terminal }: VerbCall): Promise<Client> {
  const path = dataDirectory(environment).socketFile;
  const timeoutMs = readNumber("timeout", options["timeout"], { min: 1, max: TIMEOUT_MS_MAX });
  return Client.connect({
    path,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    onConnection: (state) => {
      if (state === "lost") terminal.complain(`the kernel on ${path} is gone; waiting for it to come back`);
      else terminal.complain("it is back; the same request was sent again");
    },
  });
}

/** Undefined if no kernel is running: for verbs that work without one. */
export async function connectIfRunning(call: VerbCall): Promise<Client | undefined> {
  try {
    return await connectOnce(call);
  } catch (error) {
    if (isNotReachable(error)) return undefined;
    throw error;
  }
}

/** Sends one query to the running kernel. `kernel/inspect-capability.ts` has the types of the answers. */
export async function askKernel<Answer>(call: VerbCall, type: string, data: Json = null): Promise<Answer> {
  await using client = await connectKernel(call);
  return (await client.query(type, data)) as never as Answer;
}

/** The same; undefined if no kernel is running. */
export async function askIfRunning<Answer>(
  call: VerbCall,
  type: string,
  data: Json = null,
): Promise<Answer | undefined> {
  const client = await connectIfRunning(call);
  if (!client) return undefined;
  await using _ = client;
  return (await client.query(type, data)) as never as Answer;
}

/** The whole graph, over several pages. */
export async function askGraph(call: VerbCall): Promise<GraphView> {
  await using client = await connectKernel(call);
  const page = async (fromNode: number) =>
    (await client.query("Kernel.Graph", { fromNode })) as never as GraphView & { nodes: GraphView["nodes"][number][] };
  const view = await page(0);
  for (let more = view; more.nodes.length > 0 && view.nodes.length < view.nodeCount; ) {
    more = await page(view.nodes.length);
    view.nodes.push(...more.nodes);
  }
  return view;
}

/** The data of a message from the command line, or from standard input for `-`; null if there is none. */
export async function dataArgument(word: string | undefined): Promise<Json> {
  if (word === undefined) return null;
  try {
    return JSON.parse(word === "-" ? await text(process.stdin) : word);
  } catch (error) {
    const why = thrownText(error);
    const how =
      word === "-" ? "the standard input has to have one JSON value" : 'put it in single quotes: \'{"key": "/a"}\'';
    throw new UsageError(`the data is not JSON (${why}); ${how}`);
  }
}
