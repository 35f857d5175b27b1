/** A Web Worker with the Worker surface alone. */
import type { Message } from "../../src/message/envelope.ts";
import { bareWorker } from "./bare-worker.ts";

const scope = globalThis as never as {
  postMessage(message: unknown): void;
  onmessage: (event: { data: Message }) => void;
};
const take = bareWorker((answer) => scope.postMessage(answer));
scope.onmessage = ({ data }) => take(data);
