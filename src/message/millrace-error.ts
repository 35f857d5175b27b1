/**
 * The base of all errors that stand for misuse, or for a component that cannot continue. An answer of kind `error` is a
 * `Failure` instead. Each class lists its codes; the message names the remedy. SPEC: M35, M40.
 */

/** Marks instances, so that `instanceof` holds between two copies of the package. */
const BRAND = Symbol.for("millrace.error");

/** `instanceof` of the language, which a static `Symbol.hasInstance` hides. */
const ordinary = Function.prototype[Symbol.hasInstance];

/** Misuse, or a component that cannot continue. Its `code` is of a closed list, and the message names the remedy. */
export abstract class MillraceError<Code extends string = string> extends Error {
  readonly code: Code;

  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  get [BRAND](): true {
    return true;
  }

  /** Only of this base: a subclass of another copy is told apart by its `code`. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore lint/complexity/noThisInStatic: a subclass inherits this method
    return isBranded(this, MillraceError, BRAND, value);
  }
}

/** Whether `value` is an instance of `type`. If `type` is `base`, an instance of another copy of `base` counts too. */
export function isBranded(type: object, base: object, brand: symbol, value: unknown): boolean {
  if (type !== base) return ordinary.call(type as () => void, value);
  return typeof value === "object" && value !== null && brand in value;
}
