/** What the workers of the tests do that have only the Worker surface: no `serve`, and no word of what they have handled. */
import type { Message } from "../../src/message/envelope.ts";
import type { ErrorData } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";

/** Doubles what it is asked, up to 4; a negative number it answers after the next one. Events it only takes. */
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
