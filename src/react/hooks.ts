/**
 * Hooks over a client. SPEC: W68.
 *
 *     export const { useQuery, useCommand, useStatus } = createHooks(await connect<typeof app>({ token }));
 */
import { useCallback, useState, useSyncExternalStore } from "react";
import type {
  Arguments,
  CallOptions,
  CommandAnswer,
  CommandFailure,
  CommandInput,
  CommandName,
  Live,
  QueriesOf,
  QueryAnswer,
  QueryInput,
  Result,
} from "../app/caller.ts";
import type { Connected } from "../client/connection.ts";
import type { Status } from "../client/kernel-client.ts";

/** Until the first answer `data` is undefined. With an error, `data` is the last answer. */
export interface QueryState<Value> {
  readonly data: Value | undefined;
  readonly error: unknown;
  readonly isLoading: boolean;
}

/** `data` and `error` are those of the last command that was answered. */
export interface CommandState<Input, Value, F> {
  /** Sends the command. It does not throw a failure, but returns it. */
  send(...rest: Arguments<Input, CallOptions>): Promise<Result<Value, F>>;
  readonly isPending: boolean;
  readonly data: Value | undefined;
  readonly error: F | undefined;
}

/** The hooks of a client, typed by its app. */
export interface Hooks<A> {
  /** The answer of a query, and again whenever it differs. Components that ask the same share one live query. */
  useQuery<Name extends keyof QueriesOf<A> & string>(
    name: Name,
    ...rest: Arguments<QueryInput<A, Name>, never>
  ): QueryState<QueryAnswer<A, Name>>;
  useCommand<Name extends CommandName<A>>(
    name: Name,
  ): CommandState<CommandInput<A, Name>, CommandAnswer<A, Name>, CommandFailure<A, Name>>;
  useStatus(): Status;
}

/** The hooks of a client. Make them once, beside the client. */
export function createHooks<A>(client: Connected<A>): Hooks<A> {
  const hooks: unknown = hooksOf(client as never);
  return hooks as Hooks<A>;
}

/** A client, without the types of its app. */
interface AnyClient extends Pick<Connected<never>, "status" | "onStatus"> {
  live(name: string, data: unknown): Live<unknown>;
  safeCommand(name: string, data: unknown, options?: CallOptions): Promise<Result<unknown, unknown>>;
}

function hooksOf(client: AnyClient) {
  const all = new Map<string, Answers>();
  const answersOf = (name: string, data: unknown = null) => {
    const key = `${name} ${JSON.stringify(data)}`;
    let answers = all.get(key);
    if (answers === undefined) {
      // Those of renders that were given up have no reader.
      if (all.size >= UNUSED_MAX) for (const [old, { isUsed }] of all) if (!isUsed) all.delete(old);
      const made = new Answers(client.live(name, data), () => void (all.get(key) === made && all.delete(key)));
      answers = made;
      all.set(key, made);
    }
    return answers;
  };
  const onStatus = (changed: () => void) => client.onStatus(changed);
  const status = () => client.status;
  return {
    useQuery: (name: string, data?: unknown) => {
      const { subscribe, snapshot } = answersOf(name, data);
      return useSyncExternalStore(subscribe, snapshot, beforeAnswers);
    },
    useCommand: (name: string) => {
      const [{ pending, result }, change] = useState<Sent>({ pending: 0, result: undefined });
      const send = useCallback(
        async (data?: unknown, options?: CallOptions) => {
          change((sent) => ({ ...sent, pending: sent.pending + 1 }));
          let answered: Result<unknown, unknown> | undefined;
          try {
            answered = await client.safeCommand(name, data, options);
            return answered;
          } finally {
            change((sent) => ({ pending: sent.pending - 1, result: answered ?? sent.result }));
          }
        },
        [name],
      );
      return { send, isPending: pending > 0, data: result?.value, error: result?.failure };
    },
    useStatus: () => useSyncExternalStore(onStatus, status, status),
  };
}

const UNUSED_MAX = 1_000;
const LOADING: QueryState<unknown> = { data: undefined, error: undefined, isLoading: true };
const beforeAnswers = () => LOADING;

interface Sent {
  readonly pending: number;
  readonly result: Result<unknown, unknown> | undefined;
}

/** The answers of one query, for all components that show them. The live query ends after the last of them. */
class Answers {
  #state = LOADING;
  readonly #live: Live<unknown>;
  readonly #ended: () => void;
  readonly #readers = new Set<() => void>();
  #stop: (() => void) | undefined;

  constructor(live: Live<unknown>, ended: () => void) {
    this.#live = live;
    this.#ended = ended;
  }

  get isUsed(): boolean {
    return this.#readers.size > 0;
  }

  readonly snapshot = (): QueryState<unknown> => this.#state;

  readonly subscribe = (changed: () => void): (() => void) => {
    this.#readers.add(changed);
    this.#stop ??= this.#live.subscribe(
      (data) => this.#show({ data, error: undefined, isLoading: false }),
      (error) => this.#show({ data: this.#state.data, error, isLoading: false }),
    );
    return () => {
      this.#readers.delete(changed);
      // Later: React takes a component out and puts it in again within one task.
      void Promise.resolve().then(() => this.#endUnused());
    };
  };

  #show(state: QueryState<unknown>): void {
    this.#state = state;
    for (const changed of [...this.#readers]) changed();
  }

  #endUnused(): void {
    if (this.isUsed) return;
    this.#stop?.();
    this.#stop = undefined;
    this.#ended();
  }
}
