/**
 * `millrace token add|list|revoke`: tokens of clients that come over HTTP. The token is shown once; the kernel keeps
 * its SHA-256. SPEC: W27.
 */

import { systemHost } from "../host/system-host.ts";
import { scopeProblem } from "../http/principal.ts";
import type { TokenRecord } from "../kernel/tokens.ts";
import type { JsonObject } from "../message/json.ts";
import { hashText } from "../message/sha256.ts";
import { connectKernel } from "./connection.ts";
import { EXIT, type ExitCode, JSON_OPTION, readAge, UsageError, type Verb, type VerbCall } from "./verb.ts";

/** 256 bits. */
const TOKEN_BYTES = 32;

export const token: Verb = {
  name: "token",
  usage: "add NAME --scope SCOPES [--expires AGE] [--clearance LABELS] | list | revoke NAME [--json]",
  summary: "add, list and revoke tokens of clients that come over HTTP; a token is shown once",
  example: "millrace token add reports --scope read,send:Shop.* --expires 30d\nmillrace token revoke reports",
  options: {
    scope: { type: "string", value: "SCOPES", about: "read, send, publish, operate; or with a pattern: send:Shop.*" },
    expires: { type: "string", value: "AGE", about: "the token is refused after 90s, 15m, 12h or 30d" },
    clearance: {
      type: "string",
      value: "LABELS",
      about: "labels that the client may read, separated by commas; all unless given",
    },
    json: JSON_OPTION,
  },
  wordsMax: 2,
  run,
};

async function run(call: VerbCall): Promise<ExitCode> {
  const [deed, name] = call.words;
  if (deed === "list") return list(call);
  if (deed !== "add" && deed !== "revoke") throw new UsageError(`usage: millrace token ${token.usage}`);
  if (name === undefined) throw new UsageError(`name the token: millrace token ${deed} NAME`);
  return deed === "add" ? add(call, name) : revoke(call, name);
}

async function add(call: VerbCall, name: string): Promise<ExitCode> {
  const { options, terminal } = call;
  const scopes = textsIn(options["scope"]);
  if (scopes.length === 0) throw new UsageError("say what the token may do: --scope read,send:Shop.*");
  const problem = scopes.map(scopeProblem).find((found) => found !== undefined);
  if (problem !== undefined) throw new UsageError(problem);
  const host = systemHost();
  const expiresMs = readAge("expires", options["expires"]);
  const clearance = textsIn(options["clearance"]);
  const text = base64Url(host.randomBytes(TOKEN_BYTES));
  await using client = await connectKernel(call);
  await client.command("Kernel.AddToken", {
    ...{ name, scopes, digest: hashText(text) },
    ...(expiresMs === undefined ? {} : { expiresAtMs: host.now() + expiresMs }),
    ...(options["clearance"] === undefined ? {} : { clearance }),
  });
  if (options["json"]) terminal.line(JSON.stringify({ name, token: text }));
  else {
    terminal.line(text);
    terminal.complain(`the token "${name}"; it is not shown again`);
  }
  return EXIT.ok;
}

async function revoke(call: VerbCall, name: string): Promise<ExitCode> {
  await using client = await connectKernel(call);
  const answer = await client.command("Kernel.RevokeToken", { name });
  call.terminal.line(call.options["json"] ? JSON.stringify(answer) : `the token "${name}" is revoked`);
  return EXIT.ok;
}

async function list(call: VerbCall): Promise<ExitCode> {
  const { options, terminal } = call;
  await using client = await connectKernel(call);
  const { tokens } = (await client.query("Kernel.Tokens", null)) as JsonObject & {
    readonly tokens: readonly (TokenRecord & JsonObject)[];
  };
  for (const one of tokens) {
    const { name, scopes, createdAtMs, expiresAtMs } = one;
    const expiry = expiresAtMs === undefined ? "" : `   expires ${new Date(expiresAtMs).toISOString()}`;
    const created = new Date(createdAtMs).toISOString();
    terminal.line(options["json"] ? JSON.stringify(one) : `${name}   ${scopes.join(",")}   since ${created}${expiry}`);
  }
  if (tokens.length === 0 && !options["json"])
    terminal.line("no tokens; add one: millrace token add NAME --scope read");
  return EXIT.ok;
}

function textsIn(option: string | boolean | undefined): string[] {
  return typeof option === "string" ? option.split(",").filter((text) => text !== "") : [];
}

function base64Url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64url");
}
