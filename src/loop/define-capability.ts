/**
 * Capabilities by a short definition (`capability-definition.ts`). The actor runs in this process with a mailbox of its
 * own. With `space`, each command and event is one transaction of that space (`transactional.ts`).
 *
 *     const greeter = capability({
 *       description: "says hello",
 *       commands: {
 *         "Greeter.Hello": { input: z.object({ name: z.string() }), handle: ({ name }) => ({ text: name }) },
 *       },
 *     });
 */
import type { Capability } from "./capability.ts";
import {
  type CapabilityDefinition,
  declared,
  dispatch,
  mailboxOptions,
  type TypedDefinition,
} from "./capability-definition.ts";
import type { TypedCapability } from "./exchanges.ts";
import { type FailedMessage, MailboxActor } from "./mailbox-actor.ts";
import { type TransactionalDefinition, transactional } from "./transactional.ts";

/** With `space`, handlers get a `tx`, and their effects are one commit. */
export function capability<CommandsSent, CommandsIn, CommandsOut, QueriesSent, QueriesIn, QueriesOut>(
  definition: TransactionalDefinition<CommandsSent, CommandsIn, CommandsOut, QueriesSent, QueriesIn, QueriesOut>,
): TypedCapability<CommandsSent & QueriesSent, CommandsOut & QueriesOut>;
export function capability<CommandsSent, CommandsIn, CommandsOut, QueriesSent, QueriesIn, QueriesOut>(
  definition: TypedDefinition<CommandsSent, CommandsIn, CommandsOut, QueriesSent, QueriesIn, QueriesOut>,
): TypedCapability<CommandsSent & QueriesSent, CommandsOut & QueriesOut>;
export function capability(definition: CapabilityDefinition | AnyTransactional): Capability {
  return isTransactional(definition) ? transactional(definition) : plain(definition);
}

type AnyTransactional = TransactionalDefinition<unknown, unknown, unknown, unknown, unknown, unknown>;

function isTransactional(definition: CapabilityDefinition | AnyTransactional): definition is AnyTransactional {
  return "space" in definition && definition.space !== undefined;
}

function plain(definition: CapabilityDefinition): Capability {
  return {
    ...declared(definition),
    spawn: (spawned) => {
      const { onFailed } = definition;
      const failed = ({ message, failure, context }: FailedMessage) =>
        context.callFailed(() => onFailed?.(failure, context, message.data));
      return new MailboxActor(spawned.host, (message, context) => dispatch(definition, message, context), {
        ...mailboxOptions(definition, spawned),
        ...(onFailed === undefined ? {} : { failed }),
      });
    },
  };
}
