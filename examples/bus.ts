/** The bus: a failing handler is tried again, the other handler is not, and the journal shows the causes. */
import { EventBus, memoryStore, type TraceNode } from "millrace/bus";

await using store = memoryStore();
await using bus = new EventBus({ store });
const { promise: handled, resolve } = Promise.withResolvers<void>();

bus.subscribe("mail.received", () => console.log("index: done"), { subscriberId: "index" });
bus.subscribe(
  "mail.received",
  async (_mail, context) => {
    console.log("answer: attempt", context.attempt);
    if (context.attempt < 3) throw new Error("the server is busy");
    await context.emit("mail.answered", { text: "Thank you" });
  },
  { subscriberId: "answer", retry: { attempts: 5, backoff: { startMs: 1 } } },
);
bus.subscribe("mail.*", (event) => console.log("log:", event.topic), { subscriberId: "log" });
bus.subscribe("mail.answered", () => resolve(), { subscriberId: "end" });
await bus.start();

await bus.publish("mail.received", "imap", { from: "Ada" }, { correlation: "mail 1" });
await handled;
await bus.stop();

function tell({ row, children }: TraceNode, indent = ""): void {
  console.log(`${indent}${row.topic} from ${row.source}: ${row.status}`);
  for (const child of children) tell(child, `${indent}  `);
}
for (const root of (await bus.trace("mail 1")).roots) tell(root);

// prints:
// index: done
// answer: attempt 1
// log: mail.received
// answer: attempt 2
// answer: attempt 3
// log: mail.answered
// mail.received from imap: done
//   mail.answered from answer: done
