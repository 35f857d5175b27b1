/**
 * `app`: a name, and a function that is given the parts of a space and returns the app's commands, queries, event
 * handlers and schedules. The function is called once for each kernel, so that two kernels in one test share nothing.
 * SPEC: A1-A5.
 *
 * An app is a space: its cells, collections and computed values belong to it alone.
 */
import { BootError } from "../loop/routing-table.ts";
import { show } from "../message/problem.ts";
import { requireAppName } from "./app-name.ts";
import { appProblems } from "./app-problems.ts";
import { type AppGround, BuiltApp } from "./built-app.ts";
import type { Definition } from "./definition.ts";
import { type AppParts, StateParts } from "./parts.ts";

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
    const problems = appProblems(definition);
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
