/**
 * The kinds of providers. An extension is a provider of a kind if it has a method of that kind; one extension may be
 * several. SPEC: X12, X20.
 */
import type { Capability } from "../loop/capability.ts";
import type { Json } from "../message/json.ts";
import type { OwnerTerm } from "./ownership.ts";

/** Reaches a user. */
export interface ChannelProvider {
  /** An answer to a user's message. */
  sendToUser?(userId: string, text: string): unknown;
  /** A message without a question of the user. */
  sendMessage?(text: string): unknown;
}

/** The circumstances of a task for an agent. */
export interface AgentInvocation {
  readonly correlation?: string | undefined;
  /** The user's text, if a user wrote. */
  readonly userMessage?: string | undefined;
  /** Tools of all extensions that run. */
  readonly tools: readonly AgentTool[];
  /** Fires when the answer is no longer needed. */
  readonly signal: AbortSignal;
}

/** The answer of an agent. */
export type AgentResponse =
  | { readonly status: "success" | "refused"; readonly content: string }
  | { readonly status: "error"; readonly content?: string; readonly error: string };

/** The agent of an extension: it answers tasks with text. */
export interface AgentProvider {
  getAgentDescriptor?(): { readonly name: string; readonly description: string };
  invoke(task: string, invocation: AgentInvocation): AgentResponse | string | Promise<AgentResponse | string>;
}

/** A tool as the agent gets it. */
export interface AgentTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of its input. */
  readonly parameters?: Json;
  execute(input: Json): Json | Promise<Json>;
}

/** A tool as an extension gives it. */
export interface Tool extends Omit<AgentTool, "execute"> {
  /** `signal` fires when the answer of the agent that called is not waited for any more. */
  execute(input: Json, call: { readonly signal: AbortSignal }): Json | Promise<Json>;
}

/** The part of an extension that offers tools to agents. */
export interface ToolProvider {
  getTools(): readonly Tool[];
}

/** Runs in the background until its signal fires. */
export interface ServiceProvider {
  /**
   * Only one of the kernels on a store runs it at a time, like the connection of a channel. Its signal fires when
   * another kernel may begin; it is called again when this kernel is the next owner.
   */
  readonly singleton?: boolean;
  /** `owner` is given to a singleton. */
  runBackground(signal: AbortSignal, owner?: OwnerTerm): Promise<unknown>;
}

/** One time slot of a schedule. */
export interface ScheduledRun {
  readonly schedule: string;
  /** When it was due, in milliseconds since 1970; the same when it is tried again. */
  readonly slotMs: number;
  /** From 1; more when the process ended while it ran. */
  readonly attempt: number;
  readonly signal: AbortSignal;
}

/** A text is sent to the user; other results are ignored. */
export type TaskResult = { readonly text: string } | null | undefined | void;

/** The part of an extension that runs on a schedule. */
export interface SchedulerProvider {
  /** A cron expression in UTC; together with `execute`. */
  getSchedule?(): string;
  execute?(slot: ScheduledRun): TaskResult | Promise<TaskResult>;
  /** For the schedules of the manifest. */
  executeTask?(task: string, slot: ScheduledRun): TaskResult | Promise<TaskResult>;
}

/** Offers commands and queries; called once with the kernel's parts, before it routes messages. */
export interface CapabilityProvider {
  getCapabilities(parts: never): Readonly<Record<string, Capability>>;
}

/** The kinds of parts that an extension can provide. */
export type ProviderKind = "channel" | "scheduler" | "agent" | "tool" | "service" | "capability";

/** The methods of which one is enough. */
const METHODS: Readonly<Record<ProviderKind, readonly string[]>> = {
  channel: ["sendToUser", "sendMessage"],
  scheduler: ["getSchedule", "executeTask"],
  agent: ["invoke"],
  tool: ["getTools"],
  service: ["runBackground"],
  capability: ["getCapabilities"],
};

interface Providers {
  channel: ChannelProvider;
  scheduler: SchedulerProvider;
  agent: AgentProvider;
  tool: ToolProvider;
  service: ServiceProvider;
  capability: CapabilityProvider;
}

/** The extension as a provider of that kind, if it is one. */
export function asProvider<Kind extends ProviderKind>(kind: Kind, extension: object): Providers[Kind] | undefined {
  const isOne = METHODS[kind].some((method) => typeof Reflect.get(extension, method) === "function");
  return isOne ? (extension as Providers[Kind]) : undefined;
}

export function providerKinds(extension: object): ProviderKind[] {
  return (Object.keys(METHODS) as ProviderKind[]).filter((kind) => asProvider(kind, extension) !== undefined);
}
