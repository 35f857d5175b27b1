/** Misuse by an extension, and reasons that keep one from running. The message names the remedy. */

import { thrownText } from "../message/error-data.ts";
import { MillraceError } from "../message/millrace-error.ts";

/** The codes of `ExtensionError`. */
export type ExtensionErrorCode =
  /** The folder does not exist, or is not a folder. */
  | "EXTENSIONS_FOLDER"
  /** A manifest has a value that is not allowed. */
  | "EXTENSION_MANIFEST"
  /** The entrypoint is not a file inside the extension's folder, or exports no extension. */
  | "EXTENSION_ENTRYPOINT"
  /** A dependency is missing, disabled, part of a circle, or has failed. */
  | "EXTENSION_DEPENDENCY"
  /** A provider lacks methods that its kind needs. */
  | "EXTENSION_PROVIDER"
  /** The manifest does not declare the topic. */
  | "EXTENSION_TOPIC_UNDECLARED"
  /** The manifest does not name that extension under `depends_on`. */
  | "EXTENSION_NOT_A_DEPENDENCY"
  /** There is no hook, channel or schedule of that name. */
  | "EXTENSION_UNKNOWN_NAME"
  /** The row that holds a schedule's slot cannot be used. */
  | "EXTENSION_SCHEDULE"
  /** An argument is wrong; the call had no effect. */
  | "EXTENSION_MISUSE"
  /** No extension that runs is an agent. */
  | "EXTENSION_NO_AGENT"
  /** The agent threw, was late, said error, or too many wait for it. */
  | "EXTENSION_AGENT_FAILED"
  /** No extension that runs is a channel to the user. */
  | "EXTENSION_NO_CHANNEL"
  /** The key of an `emit` was used for other data. */
  | "EXTENSION_KEY_USED"
  /** The agent was asked by itself; it would wait for ever. */
  | "EXTENSION_AGENT_BUSY"
  /** A call took longer than its limit. */
  | "EXTENSION_TIMED_OUT"
  /** The extension has stopped or failed. */
  | "EXTENSION_STOPPED"
  /** It is not healthy, by its own word. */
  | "EXTENSION_UNHEALTHY";

/** An extension cannot be loaded, or a call of it is refused. */
export class ExtensionError extends MillraceError<ExtensionErrorCode> {
  override readonly name = "ExtensionError";
}

/** The error in one line. */
export function extensionReason(thrown: unknown): string {
  return thrownText(thrown).split("\n", 1)[0] || "it failed without saying why";
}
