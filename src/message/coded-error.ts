/**
 * What the errors of all rooms have in common that programs tell apart: a `code` of a closed list beside the words for people.
 * Its classes say the list and their name. A class of a single code needs none of this and declares it. SPEC: M35.
 */
export abstract class CodedError<Code extends string> extends Error {
  readonly code: Code;

  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
