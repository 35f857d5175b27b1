/** Request and reply inside one process: the task of each system, and the count. */
import { systemHost } from "../../src/host/system-host.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";

export interface InProcess {
  readonly name: string;
  unavailable?(): Promise<string | undefined>;
  open(): Promise<Asked>;
}

export interface Asked extends AsyncDisposable {
  /** Sends a request with a small object and resolves with the answer, the same object. */
  ask(index: number): Promise<unknown>;
}

/** Callers that each wait for their answer before they ask again. */
const CALLERS = 256;
/** Requests of each system before the clock starts, until the engine has compiled its code. */
const WARM_UP = 1_000;

/** Answers per second. */
export async function answersPerSecond(system: InProcess, count: number): Promise<number> {
  await using asked = await system.open();
  const call = async (requests: number) => {
    for (let index = 0; index < requests; index++) await asked.ask(index);
  };
  const all = (requests: number) => Promise.all(Array.from({ length: CALLERS }, () => call(requests)));
  await all(WARM_UP);
  const each = Math.ceil(count / CALLERS);
  const began = performance.now();
  await all(each);
  return (each * CALLERS) / ((performance.now() - began) / 1000);
}

export const millraceInProcess: InProcess = {
  name: "millrace",
  open: async () => {
    const host = systemHost();
    const echo = capability({ description: "echo", queries: { "Echo.Say": { handle: (data) => data } } });
    const loop = await EventLoop.boot({ host, capabilities: { echo } });
    return {
      ask: (index) => loop.query("Echo.Say", { index }),
      [Symbol.asyncDispose]: () => loop.stop(),
    };
  },
};
