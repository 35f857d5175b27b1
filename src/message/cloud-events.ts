/**
 * CloudEvents 1.0 in the JSON structured mode, both ways, without loss. SPEC: M29-M31.
 *
 * Two forms, distinguished by the extension attribute `millracekind`:
 *
 * - **ours**: `id`, `type`, `time` and `data` unchanged; correlation and causation as the Correlation extension
 *   (`correlationid`, `causationid`); other metadata under its own name if CloudEvents allows name and value (so
 *   `traceparent` is the Distributed Tracing extension), and the rest as JSON text in `millracemeta`.
 * - **foreign**: an event from another system becomes a message of kind `event`. Its extension attributes become
 *   metadata; its core attributes are kept in `metadata.cloudevent`, from which the same event is written again.
 *
 * A message is written in the foreign form only if that reads back as an equal message; otherwise in our form. Binary
 * mode and batches are not supported.
 */

import { type Checked, checkMessage, isId, isKind, isMessageType, type Message, type Refused } from "./envelope.ts";
import { equal } from "./equality.ts";
import { findImpurity, isJsonObject, type Json, type JsonObject } from "./json.ts";
import { type Problem, problemText, show } from "./problem.ts";
import { hashText } from "./sha256.ts";
import { isTopic, topicType } from "./topic.ts";

/** An event in the CloudEvents 1.0 format. */
export type CloudEvent = JsonObject & { readonly specversion: "1.0"; readonly id: string; readonly source: string };

const DATA = new Set(["data", "data_base64"]);
const CORE = new Set(["specversion", "id", "source", "type", "time", "subject", "dataschema", "datacontenttype"]);
const CARRIERS = new Set(["correlationid", "causationid", "millracekind", "millracemeta"]);
/** Metadata with a meaning of its own; attributes must not use these names. */
const OWN_METADATA = new Set(["id", "timestamp", "correlation", "causation", "cloudevent"]);

/** The type of a foreign event whose own type is neither a message type nor a topic. */
const FOREIGN_TYPE = "CloudEvent.Received";
const ATTRIBUTE_LENGTH_MAX = 20;
/**
 * Limit of extension attributes per event: metadata may have as many keys as an object, and an event needs some itself.
 */
const EXTENSIONS_MAX = 64;

/** The message as a CloudEvent. `source` is a URI reference of this kernel; ids are unique within it. */
export function toCloudEvent(message: Message, source: string): CloudEvent {
  if (source === "") throw new TypeError("a CloudEvent needs a source: a URI reference such as /kernels/main");
  return writeForeign(message) ?? writeOurs(message, source);
}

/** Converts a CloudEvent to a message; `receivedAt` is the timestamp of an event without a time. */
export function fromCloudEvent(value: unknown, receivedAt: number): Checked {
  const impurity = findImpurity(value);
  if (impurity !== undefined) return refuse(impurity);
  const event = value as Json;
  if (!isJsonObject(event)) return refuse({ path: "", problem: `a CloudEvent must be an object, got ${show(event)}` });
  const problem = findAttributeProblem(event);
  if (problem !== undefined) return refuse(problem);
  return checkMessage(isOurs(event) ? readOurs(event, receivedAt) : readForeign(event, receivedAt));
}

// Our form.

function isOurs(event: JsonObject): boolean {
  return isKind(event["millracekind"]) && !Object.hasOwn(event, "data_base64");
}

function writeOurs({ kind, type, data, metadata }: Message, source: string): CloudEvent {
  const attributes: Record<string, Json> = {};
  const rest: [string, Json][] = [];
  for (const [key, value] of Object.entries(metadata)) {
    if (value === undefined) continue;
    const name = key === "correlation" || key === "causation" ? `${key}id` : key;
    const taken = CORE.has(key) || CARRIERS.has(key) || DATA.has(key) || OWN_METADATA.has(name);
    const room = Object.keys(attributes).length < EXTENSIONS_MAX;
    if (room && !taken && isAttributeName(name) && isAttributeValue(value)) attributes[name] = value;
    else if (key === "id" ? !isAttributeText(metadata.id) : key !== "timestamp") rest.push([key, value]);
  }
  const time = formatTime(metadata.timestamp);
  if (time === undefined) rest.push(["timestamp", metadata.timestamp]);
  return {
    specversion: "1.0",
    // An id with characters that CloudEvents exclude goes into `millracemeta`; its hash is as unique.
    id: isAttributeText(metadata.id) ? metadata.id : hashText(metadata.id),
    source,
    type,
    ...(time === undefined ? {} : { time }),
    datacontenttype: "application/json",
    millracekind: kind,
    ...attributes,
    ...(rest.length === 0 ? {} : { millracemeta: attributeJson(Object.fromEntries(rest)) }),
    data,
  };
}

function readOurs(event: JsonObject, receivedAt: number): unknown {
  const entries: [string, unknown][] = [
    ["id", event["id"]],
    ["timestamp", timestampOf(event, receivedAt)],
  ];
  const implied = new Set(["specversion", "id", "source", "type", "time", "datacontenttype", "millracekind"]);
  for (const [name, value] of attributesOf(event)) {
    if (name === "correlationid" || name === "causationid") entries.push([name.slice(0, -2), value]);
    else if (!implied.has(name) && name !== "millracemeta") entries.push([name, value]);
  }
  const rest = parseRest(event["millracemeta"]);
  return {
    kind: event["millracekind"],
    type: event["type"],
    data: event["data"] ?? null,
    metadata: Object.fromEntries([...entries, ...rest]),
  };
}

function parseRest(text: Json | undefined): [string, unknown][] {
  if (typeof text !== "string") return [];
  try {
    const rest: unknown = JSON.parse(text);
    return typeof rest === "object" && rest !== null ? Object.entries(rest) : [["millracemeta", text]];
  } catch {
    // Not written by us: kept unchanged.
    return [["millracemeta", text]];
  }
}

// The foreign form.

function readForeign(event: JsonObject, receivedAt: number): unknown {
  const kept: [string, Json][] = [];
  const extensions: [string, Json][] = [];
  for (const [name, value] of attributesOf(event)) {
    if ((name === "correlationid" || name === "causationid") && isId(value))
      extensions.push([name.slice(0, -2), value]);
    else if (CORE.has(name) ? name !== "id" : OWN_METADATA.has(name)) kept.push([name, value]);
    else if (name !== "id") extensions.push([name, value]);
  }
  const form = Object.hasOwn(event, "data_base64") ? "base64" : Object.hasOwn(event, "data") ? "json" : "none";
  return {
    kind: "event",
    type: foreignType(String(event["type"])),
    data: event["data_base64"] ?? event["data"] ?? null,
    metadata: {
      id: event["id"],
      timestamp: timestampOf(event, receivedAt),
      ...Object.fromEntries(extensions),
      cloudevent: { attributes: Object.fromEntries(kept), data: form },
    },
  };
}

function foreignType(type: string): string {
  if (isMessageType(type)) return type;
  return isTopic(type) ? topicType(type) : FOREIGN_TYPE;
}

/** The foreign event from which the message was read; undefined if there is none or the message was changed since. */
function writeForeign(message: Message): CloudEvent | undefined {
  const { id, timestamp, cloudevent, correlation, causation, ...extensions } = message.metadata;
  if (!isJsonObject(cloudevent) || !isJsonObject(cloudevent["attributes"])) return undefined;
  const event: Record<string, Json | undefined> = { ...cloudevent["attributes"], ...extensions, id };
  if (correlation !== undefined) event["correlationid"] = correlation;
  if (causation !== undefined) event["causationid"] = causation;
  if (cloudevent["data"] === "json") event["data"] = message.data;
  if (cloudevent["data"] === "base64") event["data_base64"] = message.data;
  const checked = fromCloudEvent(event, timestamp);
  // Accepted by fromCloudEvent: it has the attributes that a CloudEvent needs.
  return checked.kind === "accepted" && equal(checked.message, message) ? (event as CloudEvent) : undefined;
}

// Attributes.

function findAttributeProblem(event: JsonObject): Problem | undefined {
  if (event["specversion"] !== "1.0") {
    return { path: "specversion", problem: `must be "1.0", got ${show(event["specversion"])}` };
  }
  for (const name of ["id", "source", "type"]) {
    const value = event[name];
    if (typeof value !== "string" || value === "") {
      return { path: name, problem: `must be a non-empty string, got ${show(value)}` };
    }
  }
  const { time } = event;
  if (time !== undefined && time !== null && (typeof time !== "string" || parseTime(time) === undefined)) {
    return { path: "time", problem: `must be an RFC 3339 time, got ${show(time)}` };
  }
  if (Object.hasOwn(event, "data") && Object.hasOwn(event, "data_base64")) {
    return { path: "data_base64", problem: "excludes data: an event has one of them" };
  }
  for (const [name, value] of attributesOf(event)) {
    if (!isLowerAlphanumeric(name)) {
      return { path: "", problem: `an attribute name has only a-z and 0-9, got ${show(name)}` };
    }
    if (typeof value !== "string" && typeof value !== "boolean" && !isInt32(value)) {
      return { path: name, problem: `must be a string, a boolean or a 32-bit integer, got ${show(value)}` };
    }
  }
  return undefined;
}

/** All attributes except the data. An attribute that is null counts as not set. */
function attributesOf(event: JsonObject): [string, Json][] {
  return Object.entries(event).filter(([name, value]) => !DATA.has(name) && value !== null);
}

function timestampOf(event: JsonObject, receivedAt: number): number {
  const { time } = event;
  return (typeof time === "string" ? parseTime(time) : undefined) ?? receivedAt;
}

function isAttributeName(name: string): boolean {
  return name.length <= ATTRIBUTE_LENGTH_MAX && isLowerAlphanumeric(name);
}

function isLowerAlphanumeric(name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i);
    if (!((code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39))) return false;
  }
  return name !== "";
}

function isAttributeValue(value: Json): boolean {
  return typeof value === "boolean" || isInt32(value) || (typeof value === "string" && isAttributeText(value));
}

function isInt32(value: Json): boolean {
  return typeof value === "number" && (value | 0) === value;
}

/** Not empty, and without the control characters and noncharacters that CloudEvents exclude. */
function isAttributeText(text: string): boolean {
  for (const character of text) if (isExcluded(character.codePointAt(0)!)) return false;
  return text !== "";
}

function isExcluded(point: number): boolean {
  return (
    point < 0x20 ||
    (point >= 0x7f && point <= 0x9f) ||
    (point >= 0xfdd0 && point <= 0xfdef) ||
    (point & 0xfffe) === 0xfffe
  );
}

/** JSON text with every excluded character escaped. */
function attributeJson(value: JsonObject): string {
  let text = "";
  for (const character of JSON.stringify(value)) {
    if (!isExcluded(character.codePointAt(0)!)) text += character;
    else
      for (let i = 0; i < character.length; i++) text += `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`;
  }
  return text;
}

function refuse(problem: Problem): Refused {
  return { kind: "refused", code: 422, message: problemText(problem) };
}

const TIME = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/** 9999-12-31T23:59:59.999Z, the last time with four digits for the year. */
const TIME_MS_MAX = 253_402_300_799_999;

const MINUTE_MS = 60_000;

/** The time as RFC 3339 text in UTC; undefined after the year 9999. SPEC: M30. */
export function formatTime(ms: number): string | undefined {
  return ms <= TIME_MS_MAX ? new Date(ms).toISOString() : undefined;
}

/** Milliseconds since 1970, negative before; undefined for an invalid time. A leap second counts as the next second. */
export function parseTime(text: string): number | undefined {
  const match = TIME.exec(text);
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const [, , , , , , , fraction = "", sign, offsetHour = "0", offsetMinute = "0"] = match;
  if (hour > 23 || minute > 59 || second > 60 || Number(offsetHour) > 23 || Number(offsetMinute) > 59) return undefined;
  const midnight = dayStart(year, month, day);
  if (midnight === undefined) return undefined;
  const offsetMs = (Number(offsetHour) * 60 + Number(offsetMinute)) * MINUTE_MS * (sign === "-" ? -1 : 1);
  const fractionMs = Number(fraction.slice(0, 3).padEnd(3, "0"));
  return midnight + (hour * 60 + minute) * MINUTE_MS + second * 1_000 + fractionMs - offsetMs;
}

/** Undefined for a day that the calendar does not have. */
function dayStart(year: number, month: number, day: number): number | undefined {
  // In one call: `Date.UTC` reads the years 0 to 99 as 1900 to 1999.
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day ? date.getTime() : undefined;
}
