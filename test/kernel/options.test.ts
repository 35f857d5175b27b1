/** Misspelt options: refused, with the nearest known word. */
import { describe, expect, test } from "vitest";
import { EventBus } from "../../src/bus/event-bus.ts";
import { Space } from "../../src/cells/space.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { transactional } from "../../src/loop/transactional.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";

const host = simulatedHost(1);

describe("misspelt options", () => {
  test("[K74] Kernel.open suggests the nearest option, and leaves the store open", async () => {
    const store = memoryStore({ host });
    const options = { host, store, sokcetPath: "x" };
    await expect(Kernel.open(options as never)).rejects.toThrow(
      'Kernel.open: the option "sokcetPath" is not known here; did you mean socketPath?',
    );
    expect((await store.journalEnd()).lanes.size).toBe(0);
  });

  test("[K74] an unknown limit is refused", async () => {
    const opening = Kernel.open({ host, store: memoryStore({ host }), limits: { mailboxesMax: 5 } as never });
    await expect(opening).rejects.toThrow(
      'limits: the option "mailboxesMax" is not known here; did you mean mailboxMax?',
    );
  });

  test("[K74] an unknown option of a capability or handler is refused", async () => {
    const misspelt = { description: "x", comands: {} };
    expect(() => capability(misspelt as never)).toThrow(
      'the option "comands" is not known here; did you mean commands?',
    );
    const handlers = { "A.B": { inptu: {}, handle: () => null } };
    expect(() => capability({ description: "x", queries: handlers as never })).toThrow(
      'A.B: the option "inptu" is not known here; did you mean input?',
    );
    const space = await host.run(() => Space.open({ store: memoryStore({ host }), host, name: "s" }));
    const odd = { space, description: "x", idempotnet: true };
    expect(() => transactional(odd as never)).toThrow("did you mean idempotent?");
  });

  test("[K74] an unknown option of subscribe is refused", () => {
    const bus = new EventBus({ host, store: memoryStore({ host }) });
    const options = { subscriberId: "a", retyr: { attempts: 3 } };
    expect(() => bus.subscribe("a.b", () => undefined, options as never)).toThrow(
      'subscribe: the option "retyr" is not known here; did you mean retry?',
    );
  });
});
