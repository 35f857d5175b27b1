/**
 * What the program asks in its own process: whole messages (`request`), or as a function is called (`command`, `query`), where the loop makes the
 * message. Data is checked and copied when it is asked, whatever the caller does with it afterwards. SPEC: L8.
 *
 * A message that is made here is nobody else's, and neither is its id: nothing of it is copied again, and nobody can have asked it before, so it
 * is not looked for. That is a third of the time of a request in process (decision 0007).
 */
import type { Host } from "../host/host.ts";
import { checkEnvelope, type Message } from "../message/envelope.ts";
import { type ErrorData, Failure, failureFrom } from "../message/error-data.ts";
import { findImpurity, type Json, type JsonObject, VALUE_LIMITS } from "../message/json.ts";
import { type Clone, cloneData, copyFlat } from "../message/json-copy.ts";
import { command, type Lineage, query } from "../message/lineage.ts";
import { problemText, within } from "../message/problem.ts";
import type { Answers } from "./answers.ts";
import { type Inbound, inbound } from "./inbound.ts";
import type { Lanes } from "./lanes.ts";

export class Callers {
  readonly #host: Host;
  readonly #lanes: Lanes;
  readonly #answers: Answers;

  constructor(parts: { host: Host; lanes: Lanes; answers: Answers }) {
    this.#host = parts.host;
    this.#lanes = parts.lanes;
    this.#answers = parts.answers;
  }

  command(type: string, data: Json, lineage?: Lineage): Promise<Json> {
    return this.#ask(command, type, data, lineage);
  }

  query(type: string, data: Json, lineage?: Lineage): Promise<Json> {
    return this.#ask(query, type, data, lineage);
  }

  #ask(make: typeof query, type: string, data: Json, lineage: Lineage | undefined): Promise<Json> {
    // What throws here rejects the promise: whoever asks has one place to look.
    return new Promise((resolve, reject) => {
      const clone = cloneData(data);
      const own = lineage && (copyFlat(lineage as JsonObject) as Lineage);
      const message = make(this.#host, type, clone.kind === "clone" ? clone.value : null, own);
      if (own !== undefined) requireEnvelope(message);
      this.#send(
        { message, origin: new Caller(resolve, reject), isNew: true, request: undefined, sending: undefined },
        clone,
      );
    });
  }

  request(message: Message): Promise<Message> {
    // Half of what `Promise.withResolvers` takes. What throws here rejects the promise.
    return new Promise((answer) => {
      const { kind, type, data, metadata } = message;
      if (kind !== "command" && kind !== "query")
        throw new Failure(422, `${kind} ${type} has no answer; only commands and queries are requests`);
      const clone = cloneData(data);
      const own = copyFlat((metadata ?? {}) as JsonObject) as Message["metadata"];
      const asked = { kind, type, data: clone.kind === "clone" ? clone.value : null, metadata: own };
      requireEnvelope(asked);
      this.#send(inbound(asked, { kind: "caller", answer }), clone);
    });
  }

  #send(asked: Inbound, clone: Clone): void {
    if (clone.kind === "impure")
      return this.#answers.refuse(asked, clone.isTooLarge ? 413 : 422, problemText(within("data", clone.problem)));
    const refusal = this.#lanes.put(asked, "user");
    if (refusal !== undefined) this.#answers.refuse(asked, 503, refusal);
  }
}

/** Whoever asks with an envelope that is none has no message that could be answered. */
function requireEnvelope(message: Message): void {
  const impurity = findImpurity(message.metadata, VALUE_LIMITS);
  if (impurity !== undefined) throw new Failure(422, problemText(within("metadata", impurity)));
  const checked = checkEnvelope(message);
  if (checked.kind === "refused") throw new Failure(422, checked.message);
}

/** Whoever has called a function: the answer settles his promise, an error as `Failure`. */
class Caller {
  readonly kind = "caller";
  readonly #resolve: (data: Json) => void;
  readonly #reject: (failure: Failure) => void;

  constructor(resolve: (data: Json) => void, reject: (failure: Failure) => void) {
    this.#resolve = resolve;
    this.#reject = reject;
  }

  answer(answer: Message): void {
    if (answer.kind === "reply") return this.#resolve(answer.data);
    this.#reject(failureFrom(answer.data as ErrorData));
  }
}
