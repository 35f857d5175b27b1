import type { ExtensionContext } from "./extension-context.ts";

/**
 * The object that the entry file of an extension exports. All methods are optional; those of a provider decide its kind
 * (`providers.ts`).
 *
 *     export default class Inbox implements Extension {
 *       initialize(context: ExtensionContext) { context.subscribeEvent("mail.dropped", (event) => …); }
 *     }
 */
export interface Extension {
  /** Called once, before any event is delivered: subscribe here. */
  initialize?(context: ExtensionContext): unknown;
  /** Called once all extensions are wired. */
  start?(): unknown;
  stop?(): unknown;
  /** Called last, after `stop`. */
  destroy?(): unknown;
  /** A result of false, or a throw, ends the extension. */
  healthCheck?(): boolean | Promise<boolean>;
}
