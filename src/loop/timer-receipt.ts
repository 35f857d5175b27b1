/**
 * Sets a durable timer once: the row of the due table and the receipt of the request are one commit. A request that is
 * repeated gets its first answer; another request under a used id is refused with 409, as for every transactional
 * command. SPEC: T9, T13.
 */
import type { Message } from "../message/envelope.ts";
import { Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { admit } from "../store/admit.ts";
import { labelOfMessage } from "../store/label.ts";
import { Receipt } from "../store/receipt.ts";
import { receiptOf } from "../store/receipt-name.ts";
import type { Rejection } from "../store/rejection.ts";
import type { Replica } from "../store/replica.ts";
import { pullStored } from "../store/stored-value.ts";
import { type ArmedTimer, armed } from "../work/timer-row.ts";
import { answerOf, requestOf } from "./transactional.ts";

/** Whether the timer is new, and the answer to its request. */
export interface SetOnce {
  readonly isNew: boolean;
  readonly answer: Json;
}

export async function setOnce(replica: Replica, message: Message, timer: ArmedTimer, answer: Json): Promise<SetOnce> {
  const receipt = receiptOf({ kind: "command", id: message.metadata.id });
  const transaction = replica.transaction();
  transaction.due.push(armed(timer));
  transaction.leave(new Receipt(receipt, admit({ request: requestOf(message), result: answer }, undefined)));
  const label = labelOfMessage(message);
  if (label.length > 0) transaction.labels.push({ ...receipt, path: [], labels: [...label] });
  const outcome = await transaction.commit().outcome;
  if (outcome.kind === "committed") return { isNew: true, answer };
  if (outcome.reason !== "document-exists") throw failureOf(outcome);
  const found = await pullStored(replica, receipt);
  if (found === undefined)
    throw new Failure(410, `${message.metadata.id} was handled, and its answer is not kept any more`);
  return { isNew: false, answer: answerOf(found, message) };
}

function failureOf(rejection: Rejection): Failure {
  if (rejection.reason === "too-old") return new Failure(410, rejection.message, { reason: "TOO_OLD" });
  if (rejection.class === "refused") return new Failure(422, `not set: ${rejection.message}`);
  const became = rejection.class === "unknown" ? "it is not known whether it was set" : "not set";
  return new Failure(503, `${became}: ${rejection.message}; repeat it under its id`);
}
