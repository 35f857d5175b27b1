/**
 * `app`: a name, and a function that is given the parts of a space and returns the app's commands, queries, event
 * handlers and schedules. The function is called once for each kernel, so that two kernels in one test share nothing.
 * SPEC: A1-A5.
 *
 * An app is a space: its cells, collections and computed values belong to it alone.
 */
import type { Space } from "../cells/space.ts";
import type { Host } from "../host/host.ts";
import { BootError } from "../loop/routing-table.ts";
import { unknownOption } from "../message/near-word.ts";
import { show } from "../message/problem.ts";
import { requireAppName } from "./app-name.ts";
import { appProblems } from "./app-problems.ts";
import { BuiltApp } from "./built-app.ts";
import type { AnyEvent } from "./event-definition.ts";
import type { AnyOn } from "./on.ts";
import { type AppParts, StateParts } from "./parts.ts";
import type { AnyCommand, AnyQuery } from "./request.ts";
import type { ScheduleDefinition } from "./schedule.ts";
import type { WorkerDefinition } from "./worker-commands.ts";

/** The result of an app's function. */
export interface Definition {
  /** For people and tools. */
  readonly description?: string;
  /** By type, two PascalCase names: `"Shop.Order"`. Each is a transaction, or handled by a worker thread. */
  readonly commands?: Readonly<Record<string, AnyCommand | WorkerDefinition>>;
  /** By type. Synchronous reads, therefore live. */
  readonly queries?: Readonly<Record<string, AnyQuery>>;
  /** By a name that stays: `payment` of the app `shop` is the durable subscriber `shop.payment`. */
  readonly on?: Readonly<Record<string, AnyOn>>;
  /** By a name that stays. */
  readonly schedules?: Readonly<Record<string, ScheduleDefinition>>;
  /** Events that callers may follow with `kernel.events`. Those in `on` are among them. */
  readonly events?: Readonly<Record<string, AnyEvent>>;
}

const KNOWN: Readonly<Record<keyof Definition, true>> = {
  ...{ description: true, commands: true, queries: true, on: true, schedules: true, events: true },
};

/** The parts of a kernel that an app is built on. */
export interface AppGround {
  readonly host: Host;
  /** The app's own space. */
  readonly space: Space;
}

/** Marks apps, also those of another copy of the package. */
const APP = Symbol.for("millrace.app");

/** An app as a value: a name, and the function that defines its state and handlers. Made by `app`. */
export class App<out D extends Definition = Definition> {
  readonly name: string;
  readonly #define: (parts: AppParts) => D;
  declare readonly "~definition"?: D;

  constructor(name: string, define: (parts: AppParts) => D) {
    this.name = name;
    this.#define = define;
  }

  get [APP](): true {
    return true;
  }

  /**
   * For the kernel: calls the app's function, and puts its result together. Throws one `BootError` with all problems.
   */
  build(ground: AppGround): BuiltApp {
    const { name } = this;
    const state = new StateParts(name, ground.space);
    const definition: Definition | undefined = this.#define(state.parts);
    if (typeof definition !== "object" || definition === null)
      throw new BootError([`app ${name}: its function returns ${show(definition)}; return { commands, queries, … }`]);
    const unknown = unknownOption(definition, KNOWN);
    const problems = unknown === undefined ? appProblems(definition) : [unknown];
    if (problems.length > 0) throw new BootError(problems.map((problem) => `app ${name}: ${problem}`));
    return new BuiltApp({ ...ground, name, definition, state });
  }
}

/** Whether a value is an app, of this copy of the package or another. */
export function isApp(value: unknown): value is App {
  return typeof value === "object" && value !== null && APP in value;
}

/** Defines an app: `app("shop", ({ cell, computed, event }) => ({ commands, queries, on, schedules, events }))`. */
export function app<D extends Definition>(name: string, define: (parts: AppParts) => D): App<D> {
  requireAppName("app", name);
  if (typeof define !== "function")
    throw new TypeError(
      `app("${name}", …): takes a function of the parts, like ({ cell }) => ({ … }); got ${show(define)}`,
    );
  return new App(name, define);
}
