/** The client side of `bench/loop`: starts a server process and counts answers on its socket. */
import { type ChildProcess, spawn } from "node:child_process";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Broker, freePort, startBroker } from "./moleculer.ts";

export interface Server extends AsyncDisposable {
  readonly socket: Socket;
  readonly socketPath: string;
}

const SERVER = fileURLToPath(new URL("./server.ts", import.meta.url));

export async function startServer(mode: "bare" | "kernel", directory: string, program = SERVER): Promise<Server> {
  const child = spawn(process.execPath, [program, mode, directory], { stdio: ["pipe", "pipe", "inherit"] });
  await ready(child);
  const socketPath = join(directory, "bench.sock");
  const socket = connect(socketPath);
  await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  return {
    socket,
    socketPath,
    async [Symbol.asyncDispose]() {
      socket.destroy();
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.stdin?.end();
      await ended;
    },
  };
}

/** A broker in a process of its own, and one here that calls it. */
export async function startMoleculer(): Promise<AsyncDisposable & { readonly broker: Broker }> {
  const ports = [await freePort(), await freePort()] as const;
  const program = fileURLToPath(new URL("./server.ts", import.meta.url));
  const child = spawn(process.execPath, [program, "moleculer", ports.join()], { stdio: ["pipe", "pipe", "inherit"] });
  await ready(child);
  const broker = await startBroker("client", ports);
  await broker.waitForServices("echo");
  return {
    broker,
    async [Symbol.asyncDispose]() {
      await broker.stop();
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.stdin?.end();
      await ended;
    },
  };
}

function ready(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.stdout?.once("data", () => resolve());
    child.once("exit", (code) => reject(new Error(`the server ended with ${code} before it was ready`)));
  });
}

/** Sends `count` lines with at most `inFlight` unanswered; resolves with how long each took where that is asked for. */
export function exchange(
  socket: Socket,
  count: number,
  inFlight: number,
  line: (index: number) => string,
): Promise<number[]> {
  let sent = 0;
  let answered = 0;
  const times: number[] = [];
  const started: number[] = [];
  return new Promise((resolve) => {
    const send = () => {
      let text = "";
      while (sent < count && sent - answered < inFlight) {
        started[sent] = performance.now();
        text += line(sent++);
      }
      if (text !== "") socket.write(text);
    };
    const receive = (chunk: Buffer) => {
      for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) {
        times.push(performance.now() - (started[answered] as number));
        answered++;
      }
      if (answered < count) return send();
      socket.off("data", receive);
      resolve(times);
    };
    socket.on("data", receive);
    send();
  });
}

/** One question and the data of its answer. */
export function ask(socket: Socket, line: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let text = "";
    const receive = (chunk: Buffer) => {
      text += chunk.toString("utf8");
      if (!text.endsWith("\n")) return;
      socket.off("data", receive);
      const { kind, data } = JSON.parse(text) as { kind: string; data: unknown };
      if (kind === "reply") resolve(data);
      else reject(new Error(`answered with ${text}`));
    };
    socket.on("data", receive);
    socket.write(line);
  });
}
