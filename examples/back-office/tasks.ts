/**
 * Tasks in a collection. Its totals are kept with each write, so a command costs the same among 10 tasks and 100,000.
 */
import { type AppParts, command, index, type } from "millrace";
import { shape } from "./shape.ts";

const OPEN = { index: "by_done", key: [false] } as const;
const DONE = { index: "by_done", key: [true] } as const;

interface Task {
  title: string;
  hours: number;
  done: boolean;
}

export function tasksOf({ collection, computed, event }: AppParts) {
  const tasks = collection("tasks", type<Task>(), {
    indexes: [index("by_done", (task) => [task.done], { totals: 1 })],
    sums: { hours: (task) => task.hours },
  });
  const totals = computed("totals", () => ({
    open: tasks.count(OPEN),
    done: tasks.count(DONE),
    hoursLeft: tasks.sum("hours", OPEN),
  }));
  const added = event("Task.Added", shape({ taskId: "text", title: "text" }));
  const finished = event("Task.Done", shape({ taskId: "text" }));
  return {
    totals,
    commands: {
      // A client that names the task's id may ask twice.
      "Tasks.Add": command(
        shape({ taskId: "text?", title: "text", hours: "number?" }),
        ({ taskId, title, hours = 1 }, tx) => {
          const id = taskId ?? tx.newId();
          if (tx.get(tasks.at(id)) !== undefined) return { taskId: id, added: false };
          tx.set(tasks.at(id), { title, hours, done: false });
          tx.emit(added, { taskId: id, title });
          return { taskId: id, added: true };
        },
        { description: "adds a task, once for each taskId" },
      ),
      "Tasks.Done": command(shape({ taskId: "text" }), ({ taskId }, tx) => {
        const task = tx.get(tasks.at(taskId));
        if (task === undefined)
          return tx.refuse("NO_TASK", { code: 404, message: `there is no task ${taskId}; ask Tasks.List` });
        if (!task.done) {
          tx.set(tasks.at(taskId), { ...task, done: true });
          tx.emit(finished, { taskId });
        }
        return { done: true };
      }),
    },
    queries: {
      "Tasks.List": () => ({ tasks: tasks.all().map(({ id, value }) => ({ taskId: id, ...value })) }),
      "Tasks.Totals": () => totals.get(),
    },
    events: { added, finished },
  };
}
