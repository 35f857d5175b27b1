/** Tasks in a collection. Its totals are kept with each write, so a command costs the same among 10 tasks and 100,000. */
import { Failure } from "millrace";
import { transactional } from "millrace/loop";
import { index, type Space } from "millrace/signals";
import { type Shaped, shape } from "./shape.ts";

const TASK = { taskId: "text?", title: "text", hours: "number?" } as const;
const WHICH = { taskId: "text" } as const;

const OPEN = { index: "by_done", key: [false] };
const DONE = { index: "by_done", key: [true] };

export interface Totals {
  readonly open: number;
  readonly done: number;
  readonly hoursLeft: number;
}

interface Task {
  readonly title: string;
  readonly hours: number;
  readonly done: boolean;
}

export function tasks(space: Space) {
  const all = space.collection<Task>("tasks", {
    indexes: [index("by_done", (task) => [task.done], { totals: 1 })],
    sums: { hours: (task) => task.hours },
  });
  const totals = space.computed(
    "tasks/totals",
    (): Totals => ({
      open: all.count(OPEN),
      done: all.count(DONE),
      hoursLeft: all.sum("hours", OPEN),
    }),
  );
  const capability = transactional({
    space,
    description: "what is to be done",
    emits: { "Task.Added": shape({ taskId: "text", title: "text" }), "Task.Done": shape(WHICH) },
    commands: {
      "Tasks.Add": {
        input: shape(TASK),
        handle: ({ taskId, title, hours = 1 }: Shaped<typeof TASK>, tx, message) => {
          const id = taskId ?? message.metadata.id;
          // A client that names the task's id may ask twice.
          if (tx.get(all.at(id)) !== undefined) return { taskId: id, added: false };
          tx.set(all.at(id), { title, hours, done: false });
          tx.emit("Task.Added", { taskId: id, title });
          return { taskId: id, added: true };
        },
      },
      "Tasks.Done": {
        input: shape(WHICH),
        handle: ({ taskId }: Shaped<typeof WHICH>, tx) => {
          const task = tx.get(all.at(taskId));
          if (task === undefined) throw new Failure(404, `there is no task ${taskId}; ask Tasks.List`);
          if (task.done) return { done: true };
          tx.set(all.at(taskId), { ...task, done: true });
          tx.emit("Task.Done", { taskId });
          return { done: true };
        },
      },
    },
    queries: {
      "Tasks.List": {
        handle: async () => ({
          tasks: (await all.pull(() => all.all())).map(({ id, value }) => ({ taskId: id, ...value })),
        }),
      },
      "Tasks.Totals": { handle: async () => ({ ...(await totals.pull()) }) },
    },
  });
  return { totals, capability };
}
