/**
 * What an app's requests take and give, for the compiler alone: capabilities carry the types of their schemas, and `ExchangesOf` gives them to
 * whoever talks to the kernel. Nothing of it is there when the program runs. SPEC: K55.
 *
 *     const client = await Client.connect<ExchangesOf<typeof app>>({ path });
 */
import type { Json } from "../message/json.ts";
import type { Capability } from "./capability.ts";

/** The type of a schema; where there is none, any JSON (or one of `Others`). */
export type OrJson<T, Others = never> = unknown extends T ? Json | Others : T;

/** Stands for no property: none is ever there. */
declare const schemas: unique symbol;

/** A capability that knows, by type of request, what its schemas let in and what they give out. */
export interface TypedCapability<Inputs, Outputs> extends Capability {
  readonly [schemas]?: { readonly inputs: Inputs; readonly outputs: Outputs };
}

/** What the requests of an app take and give by their types: of a capability, of several by name, or of a function that makes them. */
export type ExchangesOf<App> = App extends (...parts: never) => infer Made
  ? ExchangesOf<Awaited<Made>>
  : App extends Capability
    ? ExchangesOfOne<App>
    : AllOf<{ [Name in keyof App]: (exchanges: ExchangesOfOne<App[Name]>) => void }[keyof App]>;

type ExchangesOfOne<One> = One extends {
  readonly [schemas]?: { readonly inputs: infer Inputs; readonly outputs: infer Outputs };
}
  ? {
      // Where no handler has a schema of that side, the compiler has worked out nothing for it.
      readonly [Type in (keyof Inputs | keyof Outputs) & string]: {
        readonly input: Type extends keyof Inputs ? OrJson<Inputs[Type]> : Json;
        readonly output: Type extends keyof Outputs ? OrJson<Outputs[Type]> : Json;
      };
    }
  : unknown;

/** All that is taken by the functions of a union, together. */
type AllOf<Takers> = [Takers] extends [(exchanges: infer All) => void] ? All : never;
