/**
 * An assistant's back office, run by `npm start`: mail comes in, a small agent reads it and makes tasks and reminders of it, totals
 * are kept up to date, and a worker does slow things. Everything lives in one file and survives `kill -9`.
 *
 *     inbox ──Email.Received──> agent ──Tasks.Add──────> tasks ──> totals (derived)
 *                                  └────Reminders.Set──> reminders ──Timer.Set──> … ──Reminders.Ring──> desk
 */
import type { KernelParts } from "millrace/kernel";
import { agent } from "./agent.ts";
import { desk } from "./desk.ts";
import { inbox } from "./inbox.ts";
import { reminders } from "./reminders.ts";
import { tasks } from "./tasks.ts";
import { worker } from "./worker.ts";

export default ({ space, host }: KernelParts) => {
  const { totals, capability } = tasks(space);
  return {
    inbox: inbox(space),
    agent: agent(),
    tasks: capability,
    ...reminders(space),
    ...worker(space, host),
    desk: desk(totals),
  };
};
