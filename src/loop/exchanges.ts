/**
 * Input and output types of an app's requests, for the compiler only: capabilities carry the types of their schemas,
 * and `ExchangesOf` gives them to clients. There is no run-time value. SPEC: K55.
 *
 *     const client = await Client.connect<ExchangesOf<typeof app>>({ path });
 */
import type { Json } from "../message/json.ts";
import type { Capability } from "./capability.ts";

/** The type of a schema; without one, any JSON (or one of `Others`). */
export type OrJson<T, Others = never> = unknown extends T ? Json | Others : T;

/** The key of a property that never exists. */
declare const schemas: unique symbol;

/** A capability that knows, by type of request, the input and output types of its schemas. */
export interface TypedCapability<Inputs, Outputs> extends Capability {
  readonly [schemas]?: { readonly inputs: Inputs; readonly outputs: Outputs };
}

/**
 * The input and output types of an app's requests, for one capability, several by name, or a function that creates
 * them.
 */
export type ExchangesOf<App> = App extends (...parts: never) => infer Made
  ? ExchangesOf<Awaited<Made>>
  : App extends Capability
    ? ExchangesOfOne<App>
    : AllOf<{ [Name in keyof App]: (exchanges: ExchangesOfOne<App[Name]>) => void }[keyof App]>;

type ExchangesOfOne<One> = One extends {
  readonly [schemas]?: { readonly inputs: infer Inputs; readonly outputs: infer Outputs };
}
  ? {
      // If no handler has a schema of that side, the compiler has inferred no keys for it.
      readonly [Type in (keyof Inputs | keyof Outputs) & string]: {
        readonly input: Type extends keyof Inputs ? OrJson<Inputs[Type]> : Json;
        readonly output: Type extends keyof Outputs ? OrJson<Outputs[Type]> : Json;
      };
    }
  : unknown;

/** The intersection of the parameters of a union of functions. */
type AllOf<Takers> = [Takers] extends [(exchanges: infer All) => void] ? All : never;
