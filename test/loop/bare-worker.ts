/** Behaviour of the test workers that have only the Worker surface: no `serve`, and no report of handled messages. */
import type { Message } from "../../src/message/envelope.ts";
import type { ErrorData } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";

/** Doubles a number up to 4; answers a negative number after the next one. Only takes events. */
export function bareWorker(say: (answer: Message | Message<ErrorData>) => void): (message: Message) => void {
  const late: Message[] = [];
  return (asked) => {
    if (asked.kind !== "query") return;
    const n = asked.data as number;
    if (n < 0) return void late.push(asked);
    if (n > 4) say(answer("error", asked, { code: 400, message: "too many" }));
    else say(answer("reply", asked, 2 * n));
    for (const before of late.splice(0)) say(answer("reply", before, "late"));
  };
}

function answer<Data extends Json | ErrorData>(kind: "reply" | "error", { type, metadata }: Message, data: Data) {
  return { kind, type, data, metadata: { id: `answer to ${metadata.id}`, timestamp: 1, causation: metadata.id } };
}
