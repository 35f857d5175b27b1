/**
 * `millrace send`, `query` and `emit`: sends one message to the running kernel and prints its answer. SPEC: K17.
 */
import type { Client } from "../client/client.ts";
import { systemHost } from "../host/system-host.ts";
import { isMessageType, type Message } from "../message/envelope.ts";
import type { ErrorData } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { commandMessage, eventMessage, queryMessage } from "../message/lineage.ts";
import { nearWord } from "../message/near-word.ts";
import { isTopic, topicType } from "../message/topic.ts";
import { connectKernel, dataArgument } from "./connection.ts";
import type { TypeItem } from "./list-kernel.ts";
import { EXIT, type ExitCode, JSON_OPTION, UsageError, type Verb, type VerbCall } from "./verb.ts";

const OPTIONS: Verb["options"] = {
  timeout: { type: "string", value: "MS", about: "wait at most this long for the answer" },
  json: JSON_OPTION,
};
const USAGE = "<Type> [json | -] [--timeout MS] [--json]";

/** No handler for the type, or the handler did not find its object. */
const NOT_FOUND = 404;

type Make = (type: string, data: Json) => Message;

interface Talking extends Pick<Verb, "name" | "summary" | "example"> {
  readonly make: Make;
  /** The error if no type was named. */
  readonly missing: string;
}

/** A verb that creates a message, sends it, and prints the answer. */
function talking({ make, missing, ...verb }: Talking): Verb {
  return { ...verb, usage: USAGE, options: OPTIONS, wordsMax: 2, run: (call) => run(call, make, missing) };
}

const NAME_A_TYPE = 'name a type, like Memory.Set; "millrace ls types" lists them';

export const send = talking({
  name: "send",
  summary: "send a command to the running kernel and print its reply",
  example: `millrace send Memory.Set '{"key": "/colour", "value": "green"}'`,
  make: (type, data) => commandMessage(systemHost(), type, data),
  missing: NAME_A_TYPE,
});

export const sendRequest = talking({
  name: "query",
  summary: "ask the running kernel and print its reply",
  example: `millrace query Memory.Get '{"key": "/colour"}'`,
  make: (type, data) => queryMessage(systemHost(), type, data),
  missing: NAME_A_TYPE,
});

export const emit = talking({
  name: "emit",
  summary: "publish an event; done when it is durable",
  example: `millrace emit Email.Received '{"from": "ada@example.org", "subject": "Invoice 12"}'`,
  make: publication,
  missing: "name a type of event, like Email.Received",
});

/** The command that publishes an event; its type is checked here. */
function publication(type: string, data: Json): Message {
  const host = systemHost();
  // Manifests and the journal use topics, so a user may have copied one.
  if (!isMessageType(type) && isTopic(type))
    throw new UsageError(`${type} is a topic; name the type: millrace emit ${topicType(type)}`);
  return commandMessage(host, "Journal.Publish", { type: eventMessage(host, type, data).type, data });
}

async function run(call: VerbCall, make: Make, missing: string): Promise<ExitCode> {
  const { words, options, terminal } = call;
  const [type, text] = words;
  if (type === undefined) throw new UsageError(missing);
  const message = inConversation(make(type, await dataArgument(text)));
  await using client = await connectKernel(call);
  const host = systemHost();
  const began = host.monotonic();
  const answer = await client.request(message);
  const took = host.monotonic() - began;
  const failed = answer.kind === "error";
  if (options["json"]) terminal.line(JSON.stringify(answer));
  else if (failed) {
    const data = answer.data as ErrorData;
    const hint = data.code === NOT_FOUND ? await handledHint(client, message) : "";
    terminal.complain(`error ${describe(data)}${hint}   ${message.metadata.id}`);
  } else
    terminal.line(
      `${terminal.good("reply")}  ${JSON.stringify(answer.data)}   ${took.toFixed(1)} ms   ${message.metadata.id}`,
    );
  return failed ? EXIT.failed : EXIT.ok;
}

/** A suggestion if the kernel has no handler for the type; empty if the handler itself answered 404. */
async function handledHint(client: Client, { kind, type }: Message): Promise<string> {
  const { types } = (await client.query("Syscall.Describe", null)) as never as { types: readonly TypeItem[] };
  const named = types.filter((item) => item.type === type);
  if (named.some((item) => item.kind === kind)) return "";
  const [other] = named;
  if (other) return `; it is a ${other.kind}: millrace ${other.kind === "query" ? "query" : "send"} ${type}`;
  const near = nearWord(
    type,
    types.filter((item) => item.kind === kind).map((item) => item.type),
  );
  return near === undefined ? '; "millrace ls types" lists the types' : `; did you mean ${near}?`;
}

/** Uses its own id as correlation, so that "millrace trace" finds all consequences. */
function inConversation(message: Message): Message {
  const { metadata } = message;
  return { ...message, metadata: { ...metadata, correlation: metadata.id } };
}

function describe({ code, message, cause }: ErrorData): string {
  return cause === undefined ? `${code}: ${message}` : `${code}: ${message} (because ${describe(cause)})`;
}
