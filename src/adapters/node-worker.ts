/**
 * Node worker threads as actors, with the interface of Web Workers, and the worker's side. SPEC: L31.
 */
import { parentPort, Worker } from "node:worker_threads";
import { WorkerActor, type WorkerEvent, type WorkerLike } from "../loop/worker-actor.ts";
import { serve, type WorkerHandlers } from "../loop/worker-serve.ts";
import { thrownText } from "../message/error-data.ts";

/** Starts a worker thread as an actor. One that ends by itself counts as crashed. */
export function nodeWorkerActor(url: URL | string, workerData?: unknown): WorkerActor {
  return new WorkerActor(new ThreadWorker(new Worker(url, { workerData })));
}

/** Inside a worker thread: handles posted messages, one at a time. */
export function serveThread(handlers: WorkerHandlers): void {
  const port = parentPort;
  if (!port) throw new Error("serveThread() is for the inside of a worker thread; start it with nodeWorkerActor()");
  serve(handlers, {
    postMessage: (message) => port.postMessage(message),
    onMessage: (listener) => void port.on("message", listener),
  });
}

class ThreadWorker implements WorkerLike {
  readonly #worker: Worker;
  #terminated = false;

  constructor(worker: Worker) {
    this.#worker = worker;
  }

  postMessage(message: unknown): void {
    this.#worker.postMessage(message);
  }

  addEventListener(type: "message" | "error" | "messageerror", listener: (event: WorkerEvent) => void): void {
    if (type === "message") this.#worker.on("message", (data: unknown) => listener({ type, data }));
    // Any value can be thrown, also null.
    else this.#worker.on(type, (error: unknown) => listener({ type, message: thrownText(error), error }));
    if (type !== "error") return;
    this.#worker.on("exit", (code) => {
      if (!this.#terminated) listener({ type, message: `the worker ended with code ${code}` });
    });
  }

  async terminate(): Promise<void> {
    this.#terminated = true;
    await this.#worker.terminate();
  }
}
