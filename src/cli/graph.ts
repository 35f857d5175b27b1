/**
 * `millrace graph`: the running kernel as a picture: events with their emitters and subscribers, requests, and derived
 * values with their reads. As text, Mermaid or Graphviz. SPEC: K43.
 */
import { type GraphView, KERNEL_NAMES } from "../kernel/inspect-capability.ts";
import { askGraph } from "./connection.ts";
import { EXIT, type ExitCode, JSON_OPTION, UsageError, type Verb, type VerbCall } from "./verb.ts";

const FORMATS = ["text", "mermaid", "dot"] as const;

export const graph: Verb = {
  name: "graph",
  usage: `[--format ${FORMATS.join("|")}] [--all] [--json]`,
  summary:
    "draw the running kernel: capabilities and subscribers, events between them, derived values and their inputs",
  example: "millrace graph --format mermaid",
  options: {
    format: { type: "string", value: "F", about: "as text, or in the language of Mermaid or Graphviz" },
    all: { type: "boolean", about: "also the parts that every kernel has" },
    json: JSON_OPTION,
  },
  wordsMax: 0,
  run,
};

interface Edge {
  readonly from: string;
  readonly to: string;
  /** The event or request; empty for a read. */
  readonly label: string;
}

async function run(call: VerbCall): Promise<ExitCode> {
  const { options, terminal } = call;
  const format = FORMATS.find((name) => name === (options["format"] ?? "text"));
  if (!format) throw new UsageError(`--format is one of ${FORMATS.join(", ")}`);
  const view = await askGraph(call);
  if (options["json"]) {
    terminal.line(JSON.stringify(view));
    return EXIT.ok;
  }
  const shown = options["all"] ? view : withoutBuiltIn(view);
  const lines = { text: textLines, mermaid: mermaidLines, dot: dotLines }[format](shown);
  for (const line of lines) terminal.line(line);
  return EXIT.ok;
}

function withoutBuiltIn({ capabilities, subscribers, ...view }: GraphView): GraphView {
  const isOwn = ({ name }: { readonly name: string }) => !KERNEL_NAMES.has(name);
  return { ...view, capabilities: capabilities.filter(isOwn), subscribers: subscribers.filter(isOwn) };
}

// Edges --------------------------------------------------------------------------------------------------------------

function edgesOf({ capabilities, subscribers, nodes }: GraphView): Edge[] {
  const edges: Edge[] = [];
  for (const { name, emits, sends } of capabilities) {
    for (const type of emits) {
      for (const other of capabilities)
        if (other.subscribes.includes(type)) edges.push({ from: name, to: other.name, label: type });
      for (const other of subscribers)
        if (other.hears.includes(type)) edges.push({ from: name, to: other.name, label: type });
    }
    for (const request of sends)
      for (const other of capabilities)
        if (other.handles.includes(request)) edges.push({ from: name, to: other.name, label: request });
  }
  edges.push(...heardFromElsewhere(capabilities, subscribers));
  const makers = new Map(nodes.flatMap(({ id, writes }) => writes.map((written) => [documentOf(written), id])));
  for (const { id, reads } of nodes) {
    const sources = new Set(reads.map((read) => makers.get(documentOf(read)) ?? documentOf(read)));
    for (const source of sources) if (source !== id) edges.push({ from: source, to: id, label: "" });
  }
  return edges;
}

/** Events that no shown capability emits: they come from clients, timers or the program. */
function heardFromElsewhere(
  capabilities: GraphView["capabilities"],
  subscribers: GraphView["subscribers"],
): readonly Edge[] {
  const emitted = new Set(capabilities.flatMap(({ emits }) => emits));
  const byCapabilities = capabilities.flatMap(({ name, subscribes }) =>
    subscribes.filter((type) => !emitted.has(type)).map((type) => ({ from: type, to: name, label: "event" })),
  );
  const bySubscribers = subscribers
    .filter(({ hears }) => hears.length === 0)
    .map(({ name, pattern }) => ({ from: pattern, to: name, label: "event" }));
  return [...byCapabilities, ...bySubscribers];
}

function documentOf(address: string): string {
  return address.split(" /")[0] as string;
}

// As text ------------------------------------------------------------------------------------------------------------

function textLines(view: GraphView): string[] {
  const edges = edgesOf(view);
  if (view.capabilities.length + view.subscribers.length + view.nodes.length === 0)
    return ["only the parts that every kernel has; --all shows them, and ls extensions the loaded extensions"];
  const lines: string[] = [];
  for (const { name, description, handles, subscribes } of view.capabilities) {
    lines.push(`${name}   ${description}`);
    for (const handle of handles) lines.push(`  takes  ${handle}`);
    for (const type of subscribes) lines.push(`  hears  ${type}`);
    for (const { label, to } of edges.filter(({ from, label }) => from === name && label !== ""))
      lines.push(`  ${label.includes(" ") ? "asks " : "emits"}  ${label} -> ${to}`);
  }
  for (const [name, heard] of Map.groupBy(view.subscribers, ({ name }) => name)) {
    lines.push(`${name}   subscribes by itself`);
    for (const { pattern } of heard) lines.push(`  hears  ${pattern}`);
  }
  if (view.nodes.length > 0) lines.push("");
  for (const { id, kind, live, status } of view.nodes) {
    lines.push(`${id}   ${kind}, ${status}, ${live ? "live" : "nobody looks"}`);
    for (const { from } of edges.filter(({ to, label }) => to === id && label === "")) lines.push(`  reads  ${from}`);
  }
  return lines;
}

// As pictures --------------------------------------------------------------------------------------------------------

interface Picture {
  /** Maps names to short ids for the picture's language. */
  readonly ids: ReadonlyMap<string, string>;
  readonly edges: readonly Edge[];
  readonly isNode: (name: string) => boolean;
}

function pictureOf(view: GraphView): Picture {
  const edges = edgesOf(view);
  const nodes = new Set(view.nodes.map(({ id }) => id));
  const names = new Set([
    ...view.capabilities.map(({ name }) => name),
    ...view.subscribers.map(({ name }) => name),
    ...nodes,
    ...edges.flatMap(({ from, to }) => [from, to]),
  ]);
  return {
    ids: new Map([...names].map((name, index) => [name, `n${index}`])),
    edges,
    isNode: (name) => nodes.has(name),
  };
}

function mermaidLines(view: GraphView): string[] {
  const { ids, edges, isNode } = pictureOf(view);
  const quoted = (text: string) => `"${text.replaceAll('"', "#quot;")}"`;
  return [
    "flowchart LR",
    ...[...ids].map(([name, id]) => (isNode(name) ? `  ${id}([${quoted(name)}])` : `  ${id}[${quoted(name)}]`)),
    ...edges.map(({ from, to, label }) => {
      const arrow = label === "" ? "-.->" : `-->|${quoted(label)}|`;
      return `  ${ids.get(from)} ${arrow} ${ids.get(to)}`;
    }),
  ];
}

function dotLines(view: GraphView): string[] {
  const { ids, edges, isNode } = pictureOf(view);
  return [
    "digraph millrace {",
    "  rankdir=LR;",
    ...[...ids].map(
      ([name, id]) => `  ${id} [label=${JSON.stringify(name)}, shape=${isNode(name) ? "ellipse" : "box"}];`,
    ),
    ...edges.map(({ from, to, label }) => {
      const look = label === "" ? "style=dashed" : `label=${JSON.stringify(label)}`;
      return `  ${ids.get(from)} -> ${ids.get(to)} [${look}];`;
    }),
    "}",
  ];
}
