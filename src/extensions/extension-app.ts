/**
 * A defined extension on its kernel: its function is called with the parts of its own space, and the result is split
 * into an app, which the kernel runs, and an `Extension`, which the loader runs. The manifest follows from both. SPEC:
 * X70-X75.
 */
import { type App, app } from "../app/app.ts";
import type { BuiltApp } from "../app/built-app.ts";
import { readData } from "../app/event-definition.ts";
import type { Request } from "../app/steps.ts";
import type { Capability } from "../loop/capability.ts";
import { BootError } from "../loop/routing-table.ts";
import type { Json, JsonObject } from "../message/json.ts";
import { show } from "../message/problem.ts";
import { topicType } from "../message/topic.ts";
import type { Activity } from "./activity.ts";
import type { DefinedExtension, ExtensionDefinition, ExtensionHead, ToolDefinition } from "./define-extension.ts";
import { manifestOfHead } from "./define-extension.ts";
import type { Extension } from "./extension.ts";
import { type ContextParts, ExtensionContext } from "./extension-context.ts";
import { ExtensionError } from "./extension-error.ts";
import type { ExtensionRecord } from "./extension-record.ts";
import { type Manifest, VERSION } from "./manifest.ts";
import type { Tool } from "./providers.ts";
import type { ExtensionSchedule } from "./schedule-table.ts";

/** An app that the kernel runs for an extension, with its cells loaded. */
export interface AddedApp {
  readonly built: BuiltApp;
  /** Handle its commands and queries. */
  capabilities(): Readonly<Record<string, Capability>>;
  /** Subscribes its handlers of events; `during` is called with each asynchronous one. */
  subscribe(
    request: Request,
    during: Activity["during"],
  ): readonly { readonly event: string; readonly end: () => void }[];
  schedules(request: Request): readonly ExtensionSchedule[];
  /** Takes it back: the extension does not start. */
  remove(): Promise<void>;
}

/** Opens the space of an app, and calls its function. Throws `BootError` with all problems of the app. */
export type OpenApp = (app: App) => Promise<AddedApp>;

/** What an extension has besides its app. */
type Roles = Pick<
  ExtensionDefinition,
  "tools" | "channel" | "agent" | "start" | "stop" | "healthCheck" | "singleton" | "runBackground"
>;

/** Calls the function of a defined extension. The record gets the manifest that follows from it. */
export async function openDefined(
  record: ExtensionRecord,
  defined: DefinedExtension,
  { openApp, ...parts }: ContextParts & { readonly openApp: OpenApp },
): Promise<Extension> {
  const { head } = defined;
  const given = record.manifest as Manifest;
  const config = configOf(head, given.config);
  const context = new ExtensionContext(record, parts);
  let roles: Roles = {};
  const asApp = app(head.id, (state) => {
    const own = { config: config as never, log: context.logger, context };
    const returned: unknown = defined.define({
      ...state,
      ...own,
      get dataDir() {
        return context.dataDir;
      },
    });
    if (typeof returned !== "object" || returned === null) return returned as never;
    const { tools, channel, agent, start, stop, healthCheck, ...rest } = returned as ExtensionDefinition;
    const { singleton, runBackground, ...definition } = rest;
    roles = omitUndefined({ tools, channel, agent, start, stop, healthCheck, singleton, runBackground });
    return definition;
  });
  const added = await openApp(asApp).catch((thrown: unknown) => {
    throw thrown instanceof BootError ? new ExtensionError("EXTENSION_MANIFEST", thrown.problems.join("; ")) : thrown;
  });
  const { built } = added;
  try {
    const computed = manifestOf(given, head, built);
    requireSame(given, computed);
    record.computed = computed;
    const request: Request = (message) => parts.requests.request(message);
    record.scheduled = () => added.schedules(request);
    return extensionOf(record, roles, added, () => added.subscribe(request, (work) => parts.activity.during(work)));
  } catch (thrown) {
    await added.remove();
    throw thrown;
  }
}

function configOf({ id, config: schema }: ExtensionHead, given: JsonObject): unknown {
  return readData(schema, given, `the configuration of ${id}`);
}

// The extension -----------------------------------------------------------------------------------------------------

function extensionOf(
  record: ExtensionRecord,
  roles: Roles,
  { built, capabilities }: AddedApp,
  subscribe: () => ReturnType<AddedApp["subscribe"]>,
): Extension {
  const { tools = {}, channel, agent, start, stop, healthCheck, singleton, runBackground } = roles;
  const toolList = Object.entries(tools).map(([name, one]) => toolOf(record.id, name, one));
  const methods = {
    ...boundMethods(channel, ["sendToUser", "sendMessage"]),
    ...boundMethods(agent, ["invoke", "getAgentDescriptor"]),
    ...(toolList.length > 0 ? { getTools: () => toolList } : {}),
    ...(built.hasRequests ? { getCapabilities: capabilities } : {}),
    ...omitUndefined({ start, stop, healthCheck, singleton, runBackground }),
    initialize: () => {
      for (const { event, end } of subscribe()) {
        record.subscribed.add(event);
        record.wired(end);
      }
    },
  };
  return methods;
}

function toolOf(extension: string, name: string, one: ToolDefinition): Tool {
  if (typeof one?.run !== "function")
    throw new ExtensionError(
      "EXTENSION_PROVIDER",
      `tools.${name}: must come from tool({ description, input, run }), got ${show(one)}`,
    );
  const { description, input, run } = one;
  const parameters = input["~standard"].jsonSchema?.input({ target: "draft-2020-12" });
  return {
    ...{ name, description },
    ...(parameters === undefined ? {} : { parameters: parameters as Json }),
    execute: async (data, call) => run(readData(input, data, `the tool ${name} of ${extension}`) as never, call),
  };
}

function boundMethods(owner: object | undefined, names: readonly string[]): Record<string, unknown> {
  const found = names.map((name) => [name, owner && Reflect.get(owner, name)] as const);
  return Object.fromEntries(
    found.filter(([, method]) => typeof method === "function").map(([name, method]) => [name, method.bind(owner)]),
  );
}

function omitUndefined<T extends object>(fields: T): { [Key in keyof T]?: NonNullable<T[Key]> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}

// The manifest ------------------------------------------------------------------------------------------------------

function manifestOf(given: Manifest, head: ExtensionHead, built: BuiltApp): Manifest {
  const { entrypoint, enabled } = given;
  const topics = [...new Set(built.subscriptions.map(({ event }) => event))];
  return {
    ...manifestOfHead(head, given.config),
    ...{ entrypoint, enabled },
    publishes: built.events.map((topic) => ({ topic, description: "" })),
    subscribes: topics.map((topic) => ({ topic, handler: "custom" })),
    schedules: built.schedules.map(({ key, pattern, timezone }) => {
      return { name: key, cron: pattern, timezone, task: key, emit: undefined };
    }),
  };
}

/** A manifest may leave out what follows from the code. Fields that it has must say the same. */
function requireSame(given: Manifest, computed: Manifest): void {
  const typesOf = (all: readonly { readonly topic: string }[]) => all.map(({ topic }) => topicType(topic));
  const schedulesOf = ({ schedules }: Manifest) =>
    schedules.map(({ name, cron, timezone = "UTC" }) => `${name} at ${cron} ${timezone}`);
  const pairs: readonly (readonly [string, readonly string[], readonly string[], boolean])[] = [
    ["id", [given.id], [computed.id], true],
    ["version", [given.version], [computed.version], given.version !== VERSION],
    ["depends_on", given.dependsOn, computed.dependsOn, true],
    ["events.publishes", typesOf(given.publishes), typesOf(computed.publishes), given.publishes.length > 0],
    ["events.subscribes", typesOf(given.subscribes), typesOf(computed.subscribes), given.subscribes.length > 0],
    ["schedules", schedulesOf(given), schedulesOf(computed), given.schedules.length > 0],
  ];
  const differing = pairs.flatMap(([field, manifest, code, isGiven]) => {
    const [left, right] = [manifest, code].map((all) => all.toSorted().join(", ") || "none");
    return isGiven && left !== right ? [`${field} is ${left} in the manifest and ${right} in the code`] : [];
  });
  if (differing.length > 0)
    throw new ExtensionError("EXTENSION_MANIFEST", `${differing.join("; ")}; make them the same, or leave them out`);
}
