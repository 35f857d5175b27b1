/**
 * Base class of errors that programs distinguish: a `code` from a closed list beside the message for people. Subclasses
 * define the list and the name. A class with a single code declares it without this base. SPEC: M35.
 */
export abstract class CodedError<Code extends string> extends Error {
  readonly code: Code;

  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
