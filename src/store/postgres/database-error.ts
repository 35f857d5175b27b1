/**
 * Errors of the database, by the next step:
 *
 * | kind       | meaning                                        | next step                                    |
 * | ---------- | ---------------------------------------------- | -------------------------------------------- |
 * | `lost`     | the connection is gone, or the server is not up | connect again, send the same batch again     |
 * | `again`    | deadlock, serialization, lock timeout           | send the same batch again                    |
 * | `refused`  | `apply_v1` found a changed fact                 | decide with the facts                        |
 * | `fenced`   | the writer was ended by another process         | register again                               |
 * | `full`     | no space, memory or connections                 | report                                       |
 * | `broken`   | damaged data                                    | stop                                         |
 * | `wrong`    | any other: a mistake of ours or missing rights  | report                                       |
 */
export type DatabaseErrorKind = "lost" | "again" | "refused" | "fenced" | "full" | "broken" | "wrong";

export class DatabaseError extends Error {
  override readonly name = "DatabaseError";
  readonly kind: DatabaseErrorKind;
  readonly code: string | undefined;

  constructor(kind: DatabaseErrorKind, message: string, options?: ErrorOptions & { code?: string | undefined }) {
    super(message, options);
    this.kind = kind;
    this.code = options?.code;
  }
}

export function databaseError(cause: unknown): DatabaseError {
  if (cause instanceof DatabaseError) return cause;
  const { code, message } = cause as { code?: unknown; message?: unknown };
  const sqlState = typeof code === "string" ? code : undefined;
  return new DatabaseError(kindOf(sqlState), typeof message === "string" ? message : String(cause), {
    cause,
    code: sqlState,
  });
}

function kindOf(code: string | undefined): DatabaseErrorKind {
  if (code === "MR001") return "refused";
  if (code === "MR002") return "fenced";
  // An error without an SQLSTATE is one of the socket or of the client.
  if (code === undefined || !/^[0-9A-Z]{5}$/.test(code) || /^E[A-Z]{4}$/.test(code)) return "lost";
  if (code.startsWith("08") || /^57P0[1-5]$/.test(code) || code === "25006" || code === "25P03") return "lost";
  if (code === "40P01" || code === "40001" || code === "55P03") return "again";
  if (code === "53300") return "lost";
  if (code.startsWith("53")) return "full";
  return code === "XX001" || code === "XX002" ? "broken" : "wrong";
}
