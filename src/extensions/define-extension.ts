/**
 * `defineExtension`: an extension in one TypeScript file. It is an app with a life, a configuration, tools and a
 * channel. Its manifest follows from the code; a `manifest.yaml` beside it may override the configuration. SPEC:
 * X70-X75.
 *
 *     export default defineExtension(
 *       { id: "greeter", version: "1.0.0", config: z.object({ greeting: z.string().default("Welcome") }) },
 *       ({ config, event, cell }) => ({ commands, queries, on, schedules, tools, start }),
 *     );
 */

import { requireAppName } from "../app/app-name.ts";
import type { Definition } from "../app/definition.ts";
import { type InputOf, isSchema, type OutputOf, type Schema } from "../app/event-definition.ts";
import type { AppParts } from "../app/parts.ts";
import type { Json, JsonObject } from "../message/json.ts";
import { unknownOption } from "../message/near-word.ts";
import { show } from "../message/problem.ts";
import type { Extension } from "./extension.ts";
import type { ExtensionContext } from "./extension-context.ts";
import type { Logger } from "./logger.ts";
import type { Manifest } from "./manifest.ts";
import { VERSION } from "./manifest.ts";
import type { AgentProvider, ChannelProvider, ServiceProvider } from "./providers.ts";

/** The facts of an extension that are known before its function is called. */
export interface ExtensionHead<S extends Schema = Schema> {
  /** The name of its space, of its data folder and of its subscribers. */
  readonly id: string;
  readonly version?: string;
  readonly name?: string;
  readonly description?: string;
  /** Any Standard Schema. It checks the configuration, and its output is `config`. */
  readonly config?: S;
  /** Extensions that are loaded and started before it. */
  readonly dependsOn?: readonly string[];
}

/** The argument of an extension's function: the parts of an app, and those of an extension. */
export interface ExtensionParts<Config = JsonObject> extends AppParts {
  /** The output of the schema; the `config` of the manifest if there is no schema. */
  readonly config: Config;
  /** Logs under `ext.<id>`. */
  readonly log: Logger;
  /** A folder of its own, made on use. */
  readonly dataDir: string;
  /** Users, the agent, hooks and other extensions. */
  readonly context: ExtensionContext;
}

/** The result of an extension's function: an app, and the roles and the life of an extension. */
export interface ExtensionDefinition
  extends Definition,
    Pick<Extension, "start" | "stop" | "healthCheck">,
    Partial<ServiceProvider> {
  /** For the agent, by name. */
  readonly tools?: Readonly<Record<string, ToolDefinition>>;
  /** Reaches a user. */
  readonly channel?: ChannelProvider;
  readonly agent?: AgentProvider;
}

/** A tool that an extension offers to agents. */
export interface ToolDefinition {
  readonly description: string;
  readonly input: Schema;
  readonly run: (input: never, call: { readonly signal: AbortSignal }) => Json | Promise<Json>;
}

/** Marks definitions, also those of another copy of the package. */
const DEFINED = Symbol.for("millrace.extension");

/** An extension as a value. Made by `defineExtension`. */
export class DefinedExtension {
  readonly head: ExtensionHead;
  readonly define: (parts: ExtensionParts<never>) => ExtensionDefinition;

  constructor(head: ExtensionHead, define: (parts: ExtensionParts<never>) => ExtensionDefinition) {
    this.head = head;
    this.define = define;
  }

  get [DEFINED](): true {
    return true;
  }
}

/** Whether a value comes from `defineExtension`, of this copy of the package or another. */
export function isDefinedExtension(value: unknown): value is DefinedExtension {
  return typeof value === "object" && value !== null && DEFINED in value;
}

const HEAD: Readonly<Record<keyof ExtensionHead, true>> = {
  ...{ id: true, version: true, name: true, description: true, config: true, dependsOn: true },
};

/** Defines an extension: `export default defineExtension({ id, version, config, dependsOn }, (parts) => ({ … }))`. */
export function defineExtension<S extends Schema>(
  head: ExtensionHead<S> & { readonly config: S },
  define: (parts: ExtensionParts<OutputOf<S>>) => ExtensionDefinition,
): DefinedExtension;
export function defineExtension(
  head: ExtensionHead & { readonly config?: undefined },
  define: (parts: ExtensionParts) => ExtensionDefinition,
): DefinedExtension;
export function defineExtension(
  head: ExtensionHead,
  define: (parts: ExtensionParts<never>) => ExtensionDefinition,
): DefinedExtension {
  const unknown = unknownOption(head, HEAD);
  if (unknown !== undefined) throw new TypeError(`defineExtension: ${unknown}`);
  if (head.config !== undefined && !isSchema(head.config))
    throw new TypeError(`defineExtension("${head.id}"): config is a Standard Schema, got ${show(head.config)}`);
  if (typeof define !== "function")
    throw new TypeError(
      `defineExtension("${head.id}"): takes a function of the parts second, like ({ config }) => ({ … })`,
    );
  // An extension is an app: its id has to be the name of one.
  requireAppName("defineExtension", head.id);
  return new DefinedExtension(head, define);
}

/** A tool for the agent: `tool({ description, input: schema, run: (data, { signal }) => … })`. */
export function tool<S extends Schema>(definition: {
  readonly description: string;
  readonly input: S;
  readonly run: (input: OutputOf<S>, call: { readonly signal: AbortSignal }) => Json | Promise<Json>;
}): ToolDefinition & { readonly "~input"?: InputOf<S> } {
  const { description, input, run } = definition;
  if (typeof description !== "string" || !isSchema(input) || typeof run !== "function")
    throw new TypeError("tool({ description, input, run }): takes a text, a Standard Schema and a function");
  return { description, input, run: run as ToolDefinition["run"] };
}

/** The manifest of a definition whose function has not been called yet. */
export function manifestOfHead(head: ExtensionHead, config: JsonObject = {}): Manifest {
  const { id, version = VERSION, name = id, description = "", dependsOn = [] } = head;
  const entrypoint = { file: "", exportName: "default" };
  return {
    ...{ id, name, version, description, entrypoint, dependsOn, config, enabled: true },
    ...{ publishes: [], subscribes: [], schedules: [] },
  };
}
