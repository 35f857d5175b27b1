/** Messages: made with lineage, checked with a reason, mapped to CloudEvents and back. */
import { fromCloudEvent, toCloudEvent } from "millrace/cloudevents";
import { systemHost } from "millrace/loop";
import { causationOf, causedBy, checkMessage, commandMessage, eventMessage, replyMessage } from "millrace/message";

const host = systemHost();

const order = commandMessage(host, "Order.Place", { item: "lamp", pieces: 2 }, { correlation: "basket 7" });
const placed = eventMessage(host, "Order.Placed", { item: "lamp" }, causedBy(order));
const answer = replyMessage(host, order, { number: 1001 });
console.log("the event was caused by the command:", causationOf(placed) === order.metadata.id);
console.log("it belongs to the same conversation:", placed.metadata.correlation);
console.log("the reply has the type of the request:", answer.type);

const refused = checkMessage({ ...order, data: { item: "lamp", pieces: Number.NaN } });
if (refused.kind === "refused") console.log("refused:", refused.code, refused.message);

const travelled = fromCloudEvent(toCloudEvent(placed, "urn:shop"), host.now());
if (travelled.kind === "accepted")
  console.log("back from a CloudEvent:", travelled.message.type, JSON.stringify(travelled.message.data));

// prints:
// the event was caused by the command: true
// it belongs to the same conversation: basket 7
// the reply has the type of the request: Order.Place
// refused: 422 data.pieces: must be a finite number, got NaN
// back from a CloudEvent: Order.Placed {"item":"lamp"}
