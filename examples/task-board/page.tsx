/** The page: tasks of the back office, live. Open it twice: one tab shows the changes of the other. */
import { connect } from "millrace/client";
import { createHooks } from "millrace/react";
import { type FormEvent, useState } from "react";
import { createRoot } from "react-dom/client";
import type office from "../back-office/app.ts";

// The address that the server prints has the token behind the `#`, which no browser sends anywhere.
const kernel = await connect<typeof office>({ token: location.hash.slice(1) });
const { useQuery, useCommand, useStatus } = createHooks(kernel);

const STATES = {
  connecting: "connecting…",
  connected: "live",
  away: "the kernel is away; this page connects again",
  refused: "the kernel refuses the token; open the address that the server has printed",
  closed: "closed",
};

function Board() {
  const { connection, waiting } = useStatus();
  const { data: totals } = useQuery("Tasks.Totals");
  const { data, isLoading } = useQuery("Tasks.List");
  const done = useCommand("Tasks.Done");
  return (
    <main>
      <header>
        <h1>Tasks</h1>
        <p className={connection} role="status">
          {STATES[connection]}
          {waiting > 0 && `, ${waiting} unanswered`}
        </p>
      </header>
      <AddTask />
      {isLoading ? <p>loading…</p> : data?.tasks.length === 0 && <p>Nothing to do. Add the first task.</p>}
      <ul>
        {data?.tasks.map((task) => (
          <li key={task.taskId} className={task.done ? "done" : "open"}>
            <span>{task.title}</span>
            <small>{task.hours} h</small>
            {!task.done && (
              <button type="button" onClick={() => done.send({ taskId: task.taskId })}>
                done
              </button>
            )}
          </li>
        ))}
      </ul>
      <footer>
        {totals && `${totals.open} open, ${totals.done} done, ${totals.hoursLeft} h to go`}
        {done.error && <p role="alert">{done.error.message}</p>}
      </footer>
    </main>
  );
}

function AddTask() {
  const [title, setTitle] = useState("");
  const add = useCommand("Tasks.Add");
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setTitle("");
    const { ok } = await add.send({ title });
    // The text comes back, to be sent again.
    if (!ok) setTitle(title);
  };
  return (
    <form onSubmit={submit}>
      <input
        aria-label="a new task"
        placeholder="What is to be done?"
        value={title}
        onChange={({ target }) => setTitle(target.value)}
        required
      />
      <button type="submit">add</button>
      {add.isPending && <small>adding…</small>}
      {add.error && <p role="alert">{add.error.message}</p>}
    </form>
  );
}

createRoot(document.getElementById("board") as HTMLElement).render(<Board />);
