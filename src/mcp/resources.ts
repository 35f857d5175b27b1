/** Views of the kernel for agents: `millrace://trace/{id}`, `millrace://health`. SPEC: W35. */
import type { Resource, ResourceTemplateType } from "@modelcontextprotocol/server";
import { Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";

/** A query of the kernel that answers a resource. */
export interface ResourceQuery {
  readonly type: string;
  readonly data: Json;
}

const SCHEME = "millrace://";
const MIME = { mimeType: "application/json" } as const;

const FIXED: Readonly<Record<string, readonly [about: string, query: ResourceQuery]>> = {
  types: ["the commands and queries of the kernel, with their schemas", { type: "Syscall.Describe", data: null }],
  health: ["the state of the kernel and its parts", { type: "Kernel.Health", data: null }],
  failures: ["events and commands that failed for good", { type: "Kernel.Journal", data: { filter: "status:failed" } }],
  graph: ["capabilities, subscriptions and computed values", { type: "Kernel.Graph", data: null }],
  work: ["handlers that run now", { type: "Kernel.Work", data: null }],
};

const BY_ID: Readonly<
  Record<string, readonly [variable: string, about: string, queryOf: (id: string) => ResourceQuery]>
> = {
  journal: [
    "id",
    "a row of the journal, by its number",
    (id) => ({ type: "Kernel.Journal", data: { filter: `id:${id}` } }),
  ],
  trace: [
    "id",
    "all messages of one correlation",
    (id) => ({ type: "Kernel.Journal", data: { filter: `correlation:${id}` } }),
  ],
  request: ["id", "the state and the answer of a command", (id) => ({ type: "Kernel.Request", data: { id } })],
  why: ["node", "why a computed value has its value", (node) => ({ type: "Kernel.Why", data: { node } })],
};

export function resources(): Resource[] {
  return Object.entries(FIXED).map(([name, [description]]) => ({ uri: SCHEME + name, name, description, ...MIME }));
}

export function resourceTemplates(): ResourceTemplateType[] {
  return Object.entries(BY_ID).map(([name, [variable, description]]) => ({
    ...{ uriTemplate: `${SCHEME}${name}/{${variable}}`, name, description, ...MIME },
  }));
}

/** The query that answers a resource. Throws a `Failure` for an unknown one. */
export function resourceQuery(uri: string): ResourceQuery {
  const [name = "", ...path] = uri.startsWith(SCHEME) ? uri.slice(SCHEME.length).split("/") : [];
  const fixed = Object.hasOwn(FIXED, name) ? FIXED[name] : undefined;
  if (fixed && path.length === 0) return fixed[1];
  const id = path.map(decoded).join("/");
  const byId = Object.hasOwn(BY_ID, name) ? BY_ID[name] : undefined;
  if (byId && id !== "") return byId[2](id);
  const known = [...Object.keys(FIXED), ...Object.entries(BY_ID).map(([key, [variable]]) => `${key}/{${variable}}`)];
  throw new Failure(404, `there is no resource ${uri}; known are ${known.map((path) => SCHEME + path).join(", ")}`);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
