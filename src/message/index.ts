/**
 * `millrace/message`: envelopes, error data, canonical JSON and topics, on Node, Deno, Bun and in browsers. It
 * starts no work by itself.
 */
/// <reference lib="esnext.disposable" preserve="true" />
export { canonicalJson } from "./canonical-json.ts";
export { contentId } from "./content-id.ts";
export { DroppedError } from "./dropped.ts";
export {
  type Accepted,
  type Checked,
  causationOf,
  checkMessage,
  type Kind,
  type Message,
  type Metadata,
  type Refused,
} from "./envelope.ts";
export { equal } from "./equality.ts";
export {
  type ErrorData,
  type ErrorExtras,
  errorData,
  Failure,
  type FailureOptions,
  failureFrom,
  fromError,
  isFailure,
} from "./error-data.ts";
export type { Json, JsonArray, JsonLimits, JsonObject } from "./json.ts";
export { parseLine } from "./line.ts";
export {
  type Answerable,
  causedBy,
  commandMessage,
  error as errorMessage,
  eventMessage,
  type Lineage,
  MessageTypeError,
  type Mint,
  queryMessage,
  reply as replyMessage,
} from "./lineage.ts";
export { MillraceError } from "./millrace-error.ts";
export { deleteAt, getAt, type Path, PathError, setAt } from "./path.ts";
export { KERNEL_REASONS, type KernelReason } from "./reasons.ts";
export { TopicError, type TopicErrorCode, topicType } from "./topic.ts";
export { matchesTopic } from "./topic-pattern.ts";
