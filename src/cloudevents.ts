/** `millrace/cloudevents`: messages as CloudEvents 1.0, both ways, on Node, Deno, Bun and in browsers. */
export { type CloudEvent, fromCloudEvent, toCloudEvent } from "./message/cloud-events.ts";
