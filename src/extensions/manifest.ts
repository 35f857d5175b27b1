/**
 * The manifest of an extension, read before its code runs: `manifest.yaml` (ADR 004 §7). SPEC: X1-X6.
 *
 *     id: inbox
 *     version: "1.2.0"
 *     entrypoint: main.ts            # or main.ts:Inbox for an export of that name
 *     depends_on: [clock]
 *     config: { folder: new }
 *     events:
 *       publishes: [{ topic: email.received, description: a mail came in }]
 *       subscribes: [{ topic: user.notify, handler: notify_user, retry: { attempts: 3, backoff_ms: 1000 } }]
 *     schedules: [{ name: look, cron: "0/5 * * * *" }]
 *
 * It checks the text alone; discovery and load order check files and other extensions.
 */

import { RETRY_ATTEMPTS_MAX, TIMER_DELAY_MS_MAX } from "../limits.ts";
import type { JsonObject } from "../message/json.ts";
import { frozenCopy } from "../message/json-copy.ts";
import { show } from "../message/problem.ts";
import { findTopicProblem, TopicRegistry } from "../message/topic.ts";
import { isTopicPattern, isWildcard } from "../message/topic-pattern.ts";
import { cronProblem } from "../work/cron.ts";
import type { RetryPolicy } from "../work/retry-policy.ts";
import { type FileProblem, YamlFile, type YamlValue } from "./yaml-file.ts";

export const MANIFEST_FILE = "manifest.yaml";
/** Of a manifest that names none. */
export const VERSION = "1.0.0";

export type EventHandlerKind = "notify_user" | "custom";

export interface PublishedTopic {
  readonly topic: string;
  readonly description: string;
}

export interface SubscriptionDeclaration {
  readonly topic: string;
  readonly handler: EventHandlerKind;
  /** How often a failed delivery is tried; once unless given. Of `custom`, unless the code says otherwise. */
  readonly retry?: RetryPolicy;
}

export interface ScheduleDeclaration {
  readonly name: string;
  readonly cron: string;
  readonly timezone: string | undefined;
  /** The argument of `executeTask`; its name unless given. */
  readonly task: string;
  /** The topic that is published at each slot, in place of a call. */
  readonly emit: string | undefined;
}

export interface Entrypoint {
  /** From the extension's folder, with slashes. */
  readonly file: string;
  readonly exportName: string;
}

/** The checked content of a `manifest.yaml`. */
export interface Manifest {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly entrypoint: Entrypoint;
  readonly dependsOn: readonly string[];
  readonly config: JsonObject;
  readonly enabled: boolean;
  readonly publishes: readonly PublishedTopic[];
  readonly subscribes: readonly SubscriptionDeclaration[];
  readonly schedules: readonly ScheduleDeclaration[];
}

/** A manifest, or the problems of its file. */
export type ManifestResult =
  | { readonly kind: "valid"; readonly manifest: Manifest }
  | { readonly kind: "invalid"; readonly problems: readonly FileProblem[] };

/** Also the name of its data folder, and its subscriber id in the journal. */
const ID = /^[a-z][a-z0-9_-]{0,63}$/;
const ENTRYPOINT_ENDINGS = [".ts", ".mts", ".js", ".mjs", ".cjs"];
const FIELDS = "id name version description entrypoint depends_on config enabled events schedules".split(" ");

/** Reads and checks the text of a `manifest.yaml`. */
export function readManifest(text: string): ManifestResult {
  const file = new YamlFile(text);
  const manifest = file.problems.length === 0 ? manifestOf(file.root) : undefined;
  return manifest === undefined || file.problems.length > 0
    ? { kind: "invalid", problems: file.problems }
    : { kind: "valid", manifest };
}

function manifestOf(root: YamlValue): Manifest | undefined {
  const fields = root.fields(FIELDS);
  const id = required(root, fields, "id", extensionId);
  const name = fields.get("name")?.text();
  const version = fields.get("version")?.text() ?? VERSION;
  const description = fields.get("description")?.text() ?? "";
  const entrypoint = required(root, fields, "entrypoint", entrypointOf);
  const dependsOn = distinct(fields.get("depends_on"), extensionId, (dependency) => dependency);
  if (id !== undefined && dependsOn.includes(id)) fields.get("depends_on")?.wrong(`${id} cannot depend on itself`);
  const config: JsonObject = frozenCopy(fields.get("config")?.object() ?? {});
  const enabled = fields.get("enabled")?.flag() ?? true;
  const events = fields.get("events")?.fields(["publishes", "subscribes"]);
  const publishes = distinct(events?.get("publishes"), publication, ({ topic }) => topic);
  const subscribes = distinct(events?.get("subscribes"), subscription, ({ topic }) => topic);
  const topics = publishes.map(({ topic }) => topic);
  const schedules = distinct(
    fields.get("schedules"),
    (value) => schedule(value, topics),
    (one) => one.name,
  );
  if (id === undefined || entrypoint === undefined) return undefined;
  return {
    ...{ id, name: name ?? id, version, description, entrypoint, dependsOn, config, enabled },
    ...{ publishes, subscribes, schedules },
  };
}

function extensionId(value: YamlValue): string | undefined {
  const id = value.text();
  if (id === undefined || ID.test(id)) return id;
  return value.wrong(`must be 1 to 64 small letters, digits, "-" and "_", a letter first; got ${show(id)}`);
}

function entrypointOf(value: YamlValue): Entrypoint | undefined {
  const text = value.text();
  if (text === undefined) return undefined;
  const [file = "", exportName = "default", ...more] = text.split(":");
  const segments = file.split("/");
  const wrongPath = segments.some((segment) => segment === "" || segment === "." || segment === "..");
  if (more.length > 0 || wrongPath || file.includes("\\") || exportName === "")
    return value.wrong(
      `must be a path inside the extension's folder, such as main.ts or src/main.js:Inbox; got ${show(text)}`,
    );
  if (ENTRYPOINT_ENDINGS.some((ending) => file.endsWith(ending))) return { file, exportName };
  return value.wrong(`must end in ${ENTRYPOINT_ENDINGS.join(", ")}; got ${show(file)}`);
}

function publication(value: YamlValue): PublishedTopic | undefined {
  const fields = value.fields(["topic", "description"]);
  const topic = required(value, fields, "topic", publishedTopic);
  const description = fields.get("description")?.text() ?? "";
  return topic === undefined ? undefined : { topic, description };
}

function publishedTopic(value: YamlValue): string | undefined {
  const topic = value.text();
  if (topic === undefined) return undefined;
  const problem = findTopicProblem(topic);
  if (problem) return value.wrong(problem.problem);
  if (!topic.startsWith(SYSTEM_PREFIX)) return topic;
  return value.wrong(
    `topics that begin with ${SYSTEM_PREFIX} are the kernel's; ${SYSTEM_TOPICS.join(", ")} need no declaration`,
  );
}

function subscription(value: YamlValue): SubscriptionDeclaration | undefined {
  const fields = value.fields(["topic", "handler", "retry"]);
  const topic = required(value, fields, "topic", subscribedTopic);
  const handler = fields.has("handler") ? handlerKind(fields.get("handler")!) : "custom";
  const retry = fields.has("retry") ? { retry: retryPolicy(fields.get("retry")!) } : {};
  return topic === undefined || handler === undefined ? undefined : { topic, handler, ...retry };
}

function retryPolicy(value: YamlValue): RetryPolicy {
  const fields = value.fields(["attempts", "backoff_ms", "backoff_max_ms"]);
  const ms = (name: string) => fields.get(name)?.wholeNumber({ min: 0, max: TIMER_DELAY_MS_MAX });
  const attempts = required(value, fields, "attempts", (field) =>
    field.wholeNumber({ min: 1, max: RETRY_ATTEMPTS_MAX }),
  );
  const [startMs, maxMs] = [ms("backoff_ms"), ms("backoff_max_ms")];
  const backoff = { ...(startMs === undefined ? {} : { startMs }), ...(maxMs === undefined ? {} : { maxMs }) };
  return { attempts: attempts ?? 1, backoff };
}

function subscribedTopic(value: YamlValue): string | undefined {
  const topic = value.text();
  if (topic === undefined || (isWildcard(topic) && isTopicPattern(topic))) return topic;
  const problem = findTopicProblem(topic);
  if (problem) return value.wrong(problem.problem);
  if (!topic.startsWith(SYSTEM_PREFIX) || isSystemTopic(topic)) return topic;
  return value.wrong(`there is no such system topic; there are ${SYSTEM_TOPICS.join(", ")}`);
}

function handlerKind(value: YamlValue): EventHandlerKind | undefined {
  const kind = value.text();
  if (kind === undefined || kind === "notify_user" || kind === "custom") return kind;
  if (kind === "invoke_agent")
    return value.wrong(
      "invoke_agent is not built in: only the extension knows how to make a prompt of a payload; use custom, and context.invokeAgent in its handler",
    );
  return value.wrong(`must be notify_user or custom, got ${show(kind)}`);
}

function schedule(value: YamlValue, publishes: readonly string[]): ScheduleDeclaration | undefined {
  const fields = value.fields(["name", "cron", "timezone", "task", "emit"]);
  const name = required(value, fields, "name", scheduleName);
  const cron = required(value, fields, "cron", (field) => field.text());
  const timezone = fields.get("timezone")?.text();
  const task = fields.get("task")?.text();
  const emit = fields.get("emit")?.text();
  const problem = cron === undefined ? undefined : cronProblem(cron, timezone);
  if (problem !== undefined) {
    const [field = "", ...text] = problem.split(": ");
    fields.get(field)?.wrong(text.join(": "));
  }
  if (emit !== undefined && !publishes.includes(emit))
    fields.get("emit")?.wrong(`declare ${show(emit)} under events.publishes`);
  if (emit !== undefined && task !== undefined) fields.get("task")?.wrong("a schedule has either task or emit");
  if (name === undefined || cron === undefined) return undefined;
  return { name, cron, timezone, task: task ?? name, emit };
}

function scheduleName(value: YamlValue): string | undefined {
  const name = value.text();
  if (name === undefined || ID.test(name)) return name;
  return value.wrong(`must be 1 to 64 small letters, digits, "-" and "_", a letter first; got ${show(name)}`);
}

function required<T>(
  parent: YamlValue,
  fields: ReadonlyMap<string, YamlValue>,
  name: string,
  read: (value: YamlValue) => T | undefined,
): T | undefined {
  const field = fields.get(name);
  return field === undefined ? parent.wrong(`${name} is missing`) : read(field);
}

/** The items of a list that could be read; two of the same name are reported. */
function distinct<T>(
  list: YamlValue | undefined,
  read: (value: YamlValue) => T | undefined,
  nameOf: (item: T) => string,
): T[] {
  const items = new Map<string, T>();
  for (const value of list?.items() ?? []) {
    const item = read(value);
    if (item === undefined) continue;
    if (items.has(nameOf(item))) value.wrong(`${show(nameOf(item))} is there twice`);
    items.set(nameOf(item), item);
  }
  return [...items.values()];
}

const SYSTEM_PREFIX = "system.";

export const SYSTEM_TOPICS = ["system.user.notify", "system.agent.task", "system.agent.background"] as const;

export function isSystemTopic(topic: string): boolean {
  return SYSTEM_TOPICS.some((one) => one === topic);
}

/**
 * Topics that manifests declare, by message type. A capability knows events by their type, `Email.Received`; an
 * extension publishes them as `email.received`. Through this map both mean the same event. Two topics of one type are
 * refused. SPEC: X25.
 */
export class DeclaredTopics {
  readonly #registry = new TopicRegistry();

  constructor() {
    for (const topic of SYSTEM_TOPICS) this.#registry.wire(topic);
  }

  /** Throws `TopicError` for a topic whose type belongs to another topic. */
  add({ publishes, subscribes }: Manifest): void {
    for (const { topic } of [...publishes, ...subscribes]) if (!isWildcard(topic)) this.#registry.wire(topic);
  }

  /** The topic of events of that type; the type itself where none is declared. */
  topicOf(type: string): string {
    return this.#registry.topicOf(type) ?? type;
  }
}
