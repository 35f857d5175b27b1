/** A loop with its journals in a process of a simulated world: events and commands are delivered as in a kernel. */
import { EventBus } from "../../src/bus/event-bus.ts";
import { commandBus, commandsOver, failuresNoted, journalOver } from "../../src/kernel/bus-journal.ts";
import type { Capability } from "../../src/loop/capability.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";
import { timerCapability } from "../../src/loop/timer.ts";
import type { Process } from "./world.ts";

export interface LoopParts {
  readonly loop: EventLoop;
  readonly bus: EventBus;
  readonly commands: EventBus;
}

export async function bootLoop(
  { host, store, space }: Process,
  capabilities: Readonly<Record<string, Capability>>,
): Promise<LoopParts> {
  const bus = new EventBus({ host, store });
  const commands = commandBus({ host, store });
  const observe = () => undefined;
  const noted = (source: string) => failuresNoted({ store, source, observe });
  const wired = Object.entries(capabilities).map(([name, one]): [string, Capability] => {
    const spawn: Capability["spawn"] = (context) => one.spawn({ ...context, noteFailed: noted(name) });
    return [name, { ...one, spawn }];
  });
  const timer = timerCapability({ store, replica: space.replica(space.name) });
  const loop = await host.run(() =>
    EventLoop.boot({
      host,
      capabilities: { ...Object.fromEntries(wired), timer },
      events: journalOver({ bus, topicOf: (type) => type }),
      commands: commandsOver(host, commands, noted("kernel")),
    }),
  );
  await host.run(async () => {
    await bus.start();
    await commands.start();
  });
  return { loop, bus, commands };
}
