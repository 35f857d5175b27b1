/**
 * The requests that every kernel answers besides those of its apps. Their types are written by hand, because they
 * belong to other rooms; a test compares the names with the routes of a kernel. SPEC: A25.
 */
import type { Json, JsonObject } from "../message/json.ts";

/** A message that a timer sends. */
export interface TimerMessage {
  readonly kind: "command" | "query" | "event";
  readonly type: string;
  readonly data: Json;
}

interface ByOperator {
  readonly by?: string;
}

export interface BuiltInCommands {
  "Timer.Set": (
    data: ({ readonly delayMs: number } | { readonly dueAt: number }) & { readonly message: TimerMessage },
  ) => { readonly timerId: string };
  "Timer.Every": (
    data: ({ readonly everyMs: number } | { readonly cron: string; readonly timezone?: string }) & {
      readonly message: TimerMessage;
    },
  ) => { readonly timerId: string; readonly dueAt: number };
  "Timer.Cancel": (data: { readonly timerId: string }) => { readonly cancelled: boolean; readonly underway?: number };
  "Memory.Set": (data: { readonly key: string; readonly value: Json }) => { readonly success: true };
  "Memory.Delete": (data: { readonly key: string }) => { readonly success: true };
  "Journal.Publish": (data: { readonly type: string; readonly data: Json }) => {
    readonly id: number;
    readonly messageId: string;
  };
  "Journal.Send": (data: { readonly type: string; readonly data: Json }) => { readonly id: string };
  "Kernel.AddToken": (data: {
    readonly name: string;
    readonly digest: string;
    readonly scopes: readonly string[];
    readonly clearance?: readonly string[];
    readonly expiresAtMs?: number;
  }) => { readonly name: string };
  "Kernel.RevokeToken": (data: { readonly name: string }) => { readonly name: string };
  "Kernel.Requeue": (data: ByOperator & { readonly ids: readonly number[]; readonly consumer?: string }) => {
    readonly requeued: readonly number[];
  };
  "Kernel.Discard": (data: ByOperator & { readonly ids: readonly number[]; readonly reason: string }) => {
    readonly discarded: readonly number[];
  };
  "Kernel.Replay": (data: ByOperator & { readonly id: number; readonly type?: string; readonly data?: Json }) => {
    readonly messageId: string;
  };
  "Kernel.Purge": (data: ByOperator & { readonly settledBeforeMs?: number; readonly keepSettled?: number }) => {
    readonly removed: number;
  };
  "Kernel.RemoveConsumer": (data: { readonly name: string; readonly pattern?: string }) => {
    readonly removed: readonly JsonObject[];
  };
  "Kernel.RestartExtension": (data: ByOperator & { readonly id: string }) => {
    readonly extensions: readonly JsonObject[];
  };
  "Kernel.Erase": (data: ByOperator & { readonly subject?: string }) => JsonObject;
  "Kernel.Heal": (data: { readonly capability: string }) => { readonly healed: boolean; readonly state: string };
  "Kernel.CancelTimer": (data: ByOperator & { readonly timerId: string }) => {
    readonly cancelled: boolean;
    readonly underway?: number;
  };
  "Syscall.Shutdown": () => { readonly success: true };
}

export const BUILT_IN_COMMANDS: readonly (keyof BuiltInCommands)[] = [
  ...(["Timer.Set", "Timer.Every", "Timer.Cancel", "Memory.Set", "Memory.Delete", "Journal.Publish"] as const),
  ...(["Journal.Send", "Kernel.AddToken", "Kernel.RevokeToken"] as const),
  ...([
    "Kernel.Requeue",
    "Kernel.Discard",
    "Kernel.Purge",
    "Kernel.RemoveConsumer",
    "Kernel.RestartExtension",
  ] as const),
  ...(["Kernel.Erase", "Kernel.Heal", "Kernel.CancelTimer", "Kernel.Replay", "Syscall.Shutdown"] as const),
];

export interface BuiltInQueries {
  "Memory.Get": (data: { readonly key: string }) => { readonly value: Json };
  "Memory.List": (data: { readonly prefix?: string; readonly after?: string; readonly limit?: number } | null) => {
    readonly keys: readonly string[];
    readonly after?: string;
  };
  "Syscall.Ping": (data: Json) => Json;
  "Syscall.List": () => { readonly types: readonly string[] };
  "Syscall.Describe": (data: { readonly name?: string } | null) => { readonly types: readonly JsonObject[] };
  "Kernel.Health": () => JsonObject;
  "Kernel.Graph": (data: { readonly fromNode?: number } | null) => JsonObject;
  "Kernel.Why": (data: { readonly node: string }) => JsonObject;
  "Kernel.Runs": (data: JsonObject) => JsonObject;
  "Kernel.Consumers": () => { readonly consumers: readonly JsonObject[] };
  "Kernel.Handlings": (data: JsonObject) => { readonly handlings: readonly JsonObject[] };
  "Kernel.Journal": (data: JsonObject | null) => JsonObject;
  "Kernel.Failures": (data: JsonObject | null) => JsonObject;
  "Kernel.Actors": () => { readonly actors: readonly JsonObject[] };
  "Kernel.Metrics": () => JsonObject;
  "Kernel.Timers": (data: { readonly limit?: number } | null) => { readonly timers: readonly JsonObject[] };
  "Kernel.Request": (data: { readonly id: string }) => JsonObject;
  "Kernel.Tokens": () => { readonly tokens: readonly JsonObject[] };
  "Kernel.Requests": () => { readonly requests: readonly JsonObject[] };
  "Kernel.Work": () => { readonly work: readonly JsonObject[] };
}
