/**
 * `Kernel.Request`: the state and the answer of an earlier command, from the pending requests, the journal and the
 * receipts. SPEC: W20.
 */
import type { EventBus } from "../bus/event-bus.ts";
import type { EventLoop } from "../loop/event-loop.ts";
import type { ErrorData } from "../message/error-data.ts";
import { isJsonObject, type Json, type JsonObject } from "../message/json.ts";
import { isErasedResult } from "../store/erase.ts";
import { receiptOf } from "../store/receipt-name.ts";
import type { Store } from "../store/store.ts";

export interface RequestStatus {
  /**
   * `unknown`: the kernel has never seen it, or has forgotten it. `forgotten`: it was handled, and its answer is
   * gone. `erased`: it was handled, and its answer was erased with the data of a subject.
   */
  readonly state: "running" | "done" | "failed" | "unknown" | "forgotten" | "erased";
  readonly type?: string;
  readonly answer?: Json;
  readonly error?: ErrorData;
  /** The principal that sent it, where it came over HTTP. */
  readonly principal?: string;
}

export interface RequestStatusParts {
  readonly store: Store;
  /** Knows rows of commands. */
  readonly commands: EventBus;
  readonly loop: EventLoop;
  /** The spaces whose commands leave receipts. */
  readonly spaces: readonly string[];
}

export async function requestStatus(parts: RequestStatusParts, id: string): Promise<RequestStatus> {
  const { store, commands, loop, spaces } = parts;
  const [row] = await commands.query({ messageId: id, limit: 1 });
  const message = row?.message;
  const pending = loop.pending.get(id);
  // A command that has no row yet is known by its connection.
  const sender = pending?.origin.kind === "adapter" ? pending.origin.connection.principal : undefined;
  const principal = message?.metadata["principal"] ?? sender;
  const about = {
    ...(message === undefined ? {} : { type: message.type }),
    ...(typeof principal === "string" ? { principal } : {}),
  };
  if (pending !== undefined) return { state: "running", ...about };
  if (row?.status === "pending" || row?.status === "processing") return { state: "running", ...about };
  if (row?.status === "failed")
    return { state: "failed", error: { code: 500, message: row.error ?? "failed" }, ...about };
  const receipt = await receiptIn(store, spaces, id);
  if (receipt !== undefined && isErasedResult(receipt)) return { state: "erased", ...about };
  if (receipt !== undefined) return { state: "done", answer: receipt["result"] ?? null, ...about };
  return { state: row === undefined ? "unknown" : "forgotten", ...about };
}

async function receiptIn(store: Store, spaces: readonly string[], id: string): Promise<JsonObject | undefined> {
  const ref = receiptOf({ kind: "command", id });
  for (const space of spaces) {
    const { documents } = await store.load(space, [ref]);
    const value = documents[0]?.value;
    if (value !== undefined && isJsonObject(value)) return value;
  }
  return undefined;
}
