/**
 * The implementation of `AppTx` over the `Tx` of an attempt. Members are bound, so that `const { emit } = tx` works.
 * SPEC: A6, A12, A14.
 */
import type { Json } from "../message/json.ts";
import { show } from "../message/problem.ts";
import type { MessageOptions } from "../work/outbox.ts";
import type { Tx } from "../work/tx.ts";
import { durationMs } from "./duration.ts";
import { readData } from "./event-definition.ts";
import { type AnyCommand, type AppTx, CommandDefinition, type Later } from "./request.ts";

/** Facts of the kernel that a transaction needs. */
export interface TxScope {
  /** The name under which a transaction takes an event of this type. */
  topicOf(type: string): string;
  /** The type of a command that was given as a value; undefined if no app has it, or several names. */
  nameOf(command: AnyCommand): string | undefined;
}

export class HandlerTx implements AppTx {
  readonly #tx: Tx;
  readonly #scope: TxScope;

  constructor(tx: Tx, scope: TxScope) {
    this.#tx = tx;
    this.#scope = scope;
  }

  get get(): AppTx["get"] {
    return this.#tx.get as AppTx["get"];
  }

  get set(): AppTx["set"] {
    return this.#tx.set;
  }

  get update(): AppTx["update"] {
    return this.#tx.update;
  }

  get delete(): AppTx["delete"] {
    return this.#tx.delete;
  }

  get push(): AppTx["push"] {
    return this.#tx.push;
  }

  get splice(): AppTx["splice"] {
    return this.#tx.splice;
  }

  get emit(): AppTx["emit"] {
    return (event, data, options) => {
      readData(event.schema, data, `tx.emit: ${event.name}`);
      this.#tx.emit(this.#scope.topicOf(event.name), data as Json, messageOptions("tx.emit", options));
    };
  }

  get send(): AppTx["send"] {
    return (command: AnyCommand | string, data: unknown = null, options?: Later) => {
      const type = typeof command === "string" ? command : this.#scope.nameOf(command);
      if (type === undefined)
        throw new TypeError(
          `tx.send: ${show(command)} is a command under no name, or under several; send it by its name`,
        );
      if (command instanceof CommandDefinition) readData(command.schema, data, `tx.send: ${type}`);
      this.#tx.send(type, data as Json, messageOptions("tx.send", options));
    };
  }

  get sql(): AppTx["sql"] {
    return this.#tx.sql;
  }

  get refuse(): AppTx["refuse"] {
    return this.#tx.refuse;
  }

  get newId(): AppTx["newId"] {
    return this.#tx.newId;
  }

  get attempt(): number {
    return this.#tx.attempt;
  }

  get now(): number {
    return this.#tx.now;
  }

  get signal(): AbortSignal {
    return this.#tx.signal;
  }
}

function messageOptions(what: string, { delay, ...rest }: Later = {}): MessageOptions {
  return delay === undefined ? rest : { ...rest, delayMs: durationMs(delay, `${what}: delay`) };
}
