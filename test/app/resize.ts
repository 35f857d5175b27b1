/** The file of a worker thread. */
import { isMainThread } from "node:worker_threads";
import { commands, type WorkerContext } from "../../src/worker.ts";

export default commands({
  "Image.Resize": ({ width }: { width: number; file?: string }) => ({ width: width / 2, inThread: !isMainThread }),
  "Image.Hold": (_: null, { signal }: WorkerContext) =>
    new Promise<null>((resolve) => signal.addEventListener("abort", () => resolve(null))),
  "Image.Count": async () => 3,
  "Image.Crop": ({ at }: { at: number }) => {
    if (at < 0) throw new Error("outside of the image");
    return at;
  },
});
