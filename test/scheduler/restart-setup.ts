/**
 * Processes that follow one another on the same data: each opens the space, resumes the nodes of the last one, and
 * ends.
 */
import { Space } from "../../src/cells/space.ts";
import type { Host } from "../../src/host/host.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import type { CommitRequest } from "../../src/store/commit.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import type { Store } from "../../src/store/store.ts";
import { FaultyLine } from "../store/faulty-store.ts";

/** One process: its space, its requests to the store, and the computations that ran in it. */
export class Life {
  readonly space: Space;
  readonly line: FaultyLine;
  /** Names of computations in the order of their runs. */
  readonly ran: string[];
  readonly #loaded: { count: number };

  private constructor(space: Space, line: FaultyLine, ran: string[], loaded: { count: number }) {
    this.space = space;
    this.line = line;
    this.ran = ran;
    this.#loaded = loaded;
  }

  static async begin(
    host: Host,
    store: Store,
    version = "1",
    limits: { residentDocumentsMax?: number } = {},
  ): Promise<Life> {
    const loaded = { count: 0 };
    const counting = new Proxy(store, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name);
        if (name === "load") {
          return (space: string, refs: Parameters<Store["load"]>[1]) => {
            loaded.count += refs.length;
            return target.load(space, refs);
          };
        }
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
    const line = new FaultyLine(counting);
    const onError = () => undefined;
    const space = await Space.open({ store: line.store, host, name: "s", persist: { version }, onError, ...limits });
    return new Life(space, line, [], loaded);
  }

  /** Documents that were asked for. */
  get loads(): number {
    return this.#loaded.count;
  }

  takeRan(): string[] {
    return this.ran.splice(0);
  }

  /** A computation that is seen to run. */
  noting<T>(name: string, compute: () => T): () => T {
    return () => {
      this.ran.push(name);
      return compute();
    };
  }

  /** Commits of derived values that have arrived. */
  get derivedCommits(): CommitRequest[] {
    return this.line.arrived.filter(({ basis }) => basis.length > 0);
  }

  /** Ends like a killed process: without further writes. */
  kill(): void {
    this.space.scheduler.dispose();
  }
}

export function setup({ seed = 1 }: { seed?: number } = {}) {
  const host = simulatedHost(seed);
  const disk = new MemoryDisk();
  return {
    host,
    disk,
    begin: (version?: string) => Life.begin(host, memoryStore({ host, disk }), version),
  };
}

export type Setup = ReturnType<typeof setup>;

/** Its cell is made by the run: after a restart only the row leads to the input. */
export const double = (space: Space) =>
  space.computed("double", () => (space.cell<number>("input").get() ?? 0) * 2, { fingerprint: "double" });

/** A process that has computed `double` of 1, and ended. */
export async function firstLife(at: Setup): Promise<void> {
  const life = await at.begin();
  life.space.cell("input").set(1);
  if ((await at.host.run(() => double(life.space).pull())) !== 2) throw new Error("the double of 1 is not 2");
  await at.host.run(() => life.space.close());
}
