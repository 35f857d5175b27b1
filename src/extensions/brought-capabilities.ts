/**
 * The capabilities that extensions bring: named after their extension, checked beside all others, contained so that one
 * that does not spawn is the failure of its extension. The routing table is made once, at boot. SPEC: X14, X20.
 */
import type { Capability } from "../loop/capability.ts";
import { MailboxActor } from "../loop/mailbox-actor.ts";
import { BootError, RoutingTable } from "../loop/routing-table.ts";
import { ExtensionError, extensionReason } from "./extension-error.ts";
import type { ExtensionRecord } from "./extension-record.ts";
import { asProvider } from "./providers.ts";
import { SYSTEM_SUBSCRIBER } from "./system-topics.ts";

interface BringingParts {
  /** Passed to `getCapabilities`. */
  readonly parts: object;
  readonly given: Readonly<Record<string, Capability>>;
  fail(record: ExtensionRecord, reason: string): void;
}

/** Why an extension with capabilities is not started again in a running kernel. */
export const CAPABILITIES_NEED_BOOT =
  "it brings capabilities, which a kernel routes from its boot on; restart the kernel";

export function bringsCapabilities({ providers }: ExtensionRecord): boolean {
  return providers.includes("capability");
}

/** All capabilities together; the record of each extension has its own. */
export function bringCapabilities(
  records: readonly ExtensionRecord[],
  bringing: BringingParts,
): Readonly<Record<string, Capability>> {
  const { parts, fail } = bringing;
  let all = bringing.given;
  for (const record of records) {
    if (!record.usable) continue;
    try {
      requireOwnName(record.id, all);
      const provider = asProvider("capability", record.extension!);
      const own = Object.entries(provider?.getCapabilities(parts as never) ?? {});
      record.capabilities = Object.fromEntries(
        own.map(([name, one]) => [`${record.id}.${name}`, contained(record, one, fail)]),
      );
      for (const name of Object.keys(record.capabilities)) requireOwnName(name, all);
      if (own.length > 0) RoutingTable.build(new Map(Object.entries({ ...all, ...record.capabilities })));
      all = { ...all, ...record.capabilities };
    } catch (thrown) {
      fail(record, thrown instanceof BootError ? thrown.problems.join("; ") : extensionReason(thrown));
    }
  }
  const failed = records.filter((one) => !one.usable).flatMap((one) => Object.keys(one.capabilities));
  return Object.fromEntries(Object.entries(all).filter(([name]) => !failed.includes(name)));
}

/** An actor that does not start with the kernel is the failure of its extension, and not of the kernel. */
function contained(record: ExtensionRecord, one: Capability, fail: BringingParts["fail"]): Capability {
  let hasStarted = false;
  const spawn: Capability["spawn"] = (context) => {
    try {
      return one.spawn(context);
    } catch (thrown) {
      if (hasStarted) throw thrown;
      fail(record, `spawn of ${context.name}: ${extensionReason(thrown)}`);
      // It gets no message: the loader stops it when the loop is there.
      return new MailboxActor(context.host, () => null);
    } finally {
      hasStarted = true;
    }
  };
  return { ...one, spawn };
}

/** Subscriptions are known by these names in the journal: two of one name could not be told apart. */
function requireOwnName(name: string, capabilities: Readonly<Record<string, Capability>>): void {
  if (name !== SYSTEM_SUBSCRIBER && !Object.hasOwn(capabilities, name)) return;
  throw new ExtensionError("EXTENSION_MANIFEST", `${name} is the name of a capability; give it another`);
}
