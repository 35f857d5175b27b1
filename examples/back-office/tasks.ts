/** Tasks, and what follows from them: the totals are computed when somebody asks and something has changed, never else. */
import { Failure, type Space, transactional } from "millrace";
import { type Shaped, shape } from "./shape.ts";

const TASK = { taskId: "text?", title: "text", hours: "number?" } as const;
const WHICH = { taskId: "text" } as const;

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
  const all = space.cell<Readonly<Record<string, Task>>>("tasks", {});
  const open = space.computed("tasks/open", () => Object.values(all.get() ?? {}).filter(({ done }) => !done));
  const totals = space.computed(
    "tasks/totals",
    (): Totals => ({
      open: open.get()?.length ?? 0,
      done: Object.keys(all.get() ?? {}).length - (open.get()?.length ?? 0),
      hoursLeft: (open.get() ?? []).reduce((sum, { hours }) => sum + hours, 0),
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
          // Whoever names a task's id may ask twice.
          if (tx.get(all.key(id)) !== undefined) return { taskId: id, added: false };
          tx.set(all.key(id), { title, hours, done: false });
          tx.emit("Task.Added", { taskId: id, title });
          return { taskId: id, added: true };
        },
      },
      "Tasks.Done": {
        input: shape(WHICH),
        handle: ({ taskId }: Shaped<typeof WHICH>, tx) => {
          const task = tx.get(all.key(taskId));
          if (task === undefined) throw new Failure(404, `there is no task ${taskId}; ask Tasks.List`);
          if (task.done) return { done: true };
          tx.set(all.key(taskId).key("done"), true);
          tx.emit("Task.Done", { taskId });
          return { done: true };
        },
      },
    },
    queries: {
      "Tasks.List": {
        handle: async () => ({
          tasks: Object.entries((await all.pull()) ?? {}).map(([taskId, task]) => ({ taskId, ...task })),
        }),
      },
      "Tasks.Totals": { handle: async () => ({ ...(await totals.pull()) }) },
    },
  });
  return { totals, capability };
}
