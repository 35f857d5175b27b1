/** Agents at a kernel: the official client over standard input and output, and over HTTP. */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client, type ClientOptions, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { isCreateTaskResultV2, isDetailedTaskV2 } from "@modelcontextprotocol/ext-tasks/core/v2";
import { describe, expect, onTestFinished, test } from "vitest";
import { serveHttp } from "../../src/http/serve-http.ts";
import { openOn } from "../app/app-setup.ts";
import { ALL_SCOPES, addToken } from "../http/http-setup.ts";
import { COMPILE_CACHE, KernelProcess, MAIN } from "../kernel/kernel-process.ts";
import { runProgram, scratchFolder } from "../repo/program.ts";
import notes from "./agent-app.ts";

const APP = join(import.meta.dirname, "agent-app.ts");
const EXPOSED = "Notes.*";

const LEGACY: ClientOptions = { versionNegotiation: { mode: "legacy" } };
const MODERN: ClientOptions = { versionNegotiation: { mode: { pin: "2026-07-28" } } };
const REVISIONS = [
  ["2025-11-25", LEGACY],
  ["2026-07-28", MODERN],
] as const;
/** Metadata of each request of revision 2026-07-28. The official client takes no tasks as answers. */
const ENVELOPE = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } },
} as const;

type Rpc = (
  method: string,
  params: object,
) => Promise<{ result?: Record<string, unknown>; error?: { message: string } }>;

async function agentOver(transport: StdioClientTransport | StreamableHTTPClientTransport, options: ClientOptions) {
  const client = new Client({ name: "test", version: "1" }, options);
  await client.connect(transport);
  onTestFinished(() => client.close());
  return client;
}

function stdioAgent(cwd: string, options: ClientOptions = MODERN, name = "agent") {
  const args = [MAIN, "mcp", "--expose", EXPOSED, "--agent", name];
  return agentOver(new StdioClientTransport({ command: process.execPath, args, cwd, env: COMPILE_CACHE }), options);
}

async function httpKernel(expose: readonly string[] = [EXPOSED]) {
  const kernel = await openOn("memory", notes);
  const server = await serveHttp(kernel, { port: 0, mcp: { expose } });
  onTestFinished(() => server.close({ graceMs: 0 }));
  const agent = async (name: string, scopes = ALL_SCOPES, options: ClientOptions = MODERN) => {
    const headers = { authorization: `Bearer ${await addToken(kernel, name, scopes)}` };
    const url = new URL(`${server.url}/mcp`);
    return agentOver(new StreamableHTTPClientTransport(url, { requestInit: { headers } }), options);
  };
  const rpc = async (name: string): Promise<Rpc> => {
    const token = await addToken(kernel, name, ALL_SCOPES);
    return async (method, params) => {
      const answer = await fetch(`${server.url}/mcp`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": "2026-07-28",
          "mcp-method": method,
          "mcp-name": String(Object.values(params)[0]),
        },
        body: JSON.stringify(requestOf(1, method, params)),
      });
      return (await answer.json()) as Awaited<ReturnType<Rpc>>;
    };
  };
  return { kernel, agent, rpc };
}

describe.each(REVISIONS)("an agent of revision %s", (_, options) => {
  test("[W30] [W31] over standard input and output it lists the exposed types and calls them", async () => {
    const cwd = scratchFolder();
    await KernelProcess.start(cwd, APP);
    const agent = await stdioAgent(cwd, options);
    const { tools } = await agent.listTools();
    expect(tools.map(({ name }) => name).sort()).toEqual([
      ...["Notes_Add", "Notes_All", "Notes_Clear", "Notes_Import", "Notes_Longest"],
    ]);
    const add = tools.find(({ name }) => name === "Notes_Add");
    expect(add).toMatchObject({
      description: "Adds a note",
      inputSchema: { type: "object", required: ["text"], properties: { text: { type: "string", minLength: 1 } } },
      annotations: { readOnlyHint: false },
    });
    expect(add?.inputSchema.properties).toHaveProperty("idempotencyKey");
    expect(await agent.callTool({ name: "Notes_Add", arguments: { text: "milk" } })).toMatchObject({
      structuredContent: { result: { count: 1 } },
      _meta: { "millrace/requestId": expect.any(String) },
    });
    expect(await agent.callTool({ name: "Notes_All", arguments: {} })).toMatchObject({
      content: [{ type: "text", text: '{"result":["milk"]}' }],
    });
  });

  test("[W30] over HTTP it acts as the holder of its token", async () => {
    const { agent, kernel } = await httpKernel();
    const writer = await agent("writer", ["read", "send:Notes.Add"], options);
    await writer.callTool({ name: "Notes_Add", arguments: { text: "milk" } });
    expect(await kernel.query("Notes.All")).toEqual(["milk"]);
    const refused = await writer.callTool({ name: "Notes_Clear", arguments: {} });
    expect(refused).toMatchObject({ isError: true });
    expect(JSON.stringify(refused.content)).toContain("lacks the scope send:Notes.Clear");
  });
});

describe("tools of agents", () => {
  test("[W31] a number as input stands under data; types of the kernel are not exposed", async () => {
    const { agent, kernel } = await httpKernel(["Notes.*", "Memory.*"]);
    await kernel.command("Notes.Add", { text: "buy milk" });
    const client = await agent("agent");
    const { structuredContent } = await client.callTool({ name: "Notes_Longest", arguments: { data: 4 } });
    expect(structuredContent).toEqual({ result: { found: ["buy milk"] } });
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name.split("_")[0])).not.toContain("Kernel");
    expect(await client.callTool({ name: "Syscall_Shutdown", arguments: {} })).toMatchObject({ isError: true });
  });

  test.each(["Kernel.*", "Syscall.Shutdown", "Journal.*", "*", "notes"])(
    "[W31] %s cannot be exposed",
    async (pattern) => {
      await expect(httpKernel([pattern])).rejects.toThrow(/mcp\.expose/);
    },
  );

  test("[W31] a failure is a result with code, reason, data and remedy", async () => {
    const { agent } = await httpKernel();
    const client = await agent("agent");
    const refused = await client.callTool({ name: "Notes_Add", arguments: { text: "secret" } });
    expect(refused.isError).toBe(true);
    expect(JSON.stringify(refused.content)).toContain("FORBIDDEN_WORD");
    const invalid = await client.callTool({ name: "Notes_Add", arguments: { text: "" } });
    expect(invalid.isError).toBe(true);
    expect(JSON.stringify(invalid.content)).toContain("422");
    const unknown = await client.callTool({ name: "Notes_Ad", arguments: {} });
    expect(JSON.stringify(unknown.content)).toContain("did you mean Notes_Add?");
  });

  test("[W36] of more than 20 types the rest is found, described and called by general tools", async () => {
    const { agent, kernel } = await httpKernel(["Notes.*"]);
    const client = await agent("agent");
    // General tools are called whether or not they are listed.
    const found = await client.callTool({ name: "find_types", arguments: { text: "adds" } });
    expect(found.structuredContent).toMatchObject({ types: [{ type: "Notes.Add", kind: "command" }] });
    const described = await client.callTool({ name: "describe_type", arguments: { type: "Notes.Add" } });
    expect(described.structuredContent).toMatchObject({ name: "Notes_Add" });
    await client.callTool({ name: "call_type", arguments: { type: "Notes.Add", arguments: { text: "milk" } } });
    expect(await kernel.query("Notes.All")).toEqual(["milk"]);
  });
});

describe("keys of agents", () => {
  test("[W32] a call repeated under its key takes effect once, and gets the first answer", async () => {
    const { agent, kernel } = await httpKernel();
    const client = await agent("agent");
    const add = (text: string) => client.callTool({ name: "Notes_Add", arguments: { text, idempotencyKey: "call-1" } });
    const [first, again] = [await add("milk"), await add("milk")];
    expect(again).toEqual(first);
    expect(await kernel.query("Notes.All")).toEqual(["milk"]);
    expect(JSON.stringify((await add("bread")).content)).toContain("ID_REUSED");
  });

  test("[W32] keys of two agents, and calls without a key, are different calls", async () => {
    const { agent, kernel } = await httpKernel();
    const [one, two] = [await agent("one"), await agent("two")];
    for (const client of [one, two]) {
      await client.callTool({ name: "Notes_Add", arguments: { text: "milk", idempotencyKey: "call-1" } });
      await client.callTool({ name: "Notes_Add", arguments: { text: "milk" } });
    }
    expect(await kernel.query("Notes.All")).toHaveLength(4);
  });

  test("[W32] a key may stand in _meta, and it holds over a killed kernel", async () => {
    const cwd = scratchFolder();
    const first = await KernelProcess.start(cwd, APP);
    const client = await stdioAgent(cwd);
    const add = () =>
      client.callTool({ name: "Notes_Add", arguments: { text: "milk" }, _meta: { idempotencyKey: "call-1" } });
    const answer = await add();
    await first.kill();
    await KernelProcess.start(cwd, APP);
    expect(await add()).toEqual(answer);
    const { structuredContent } = await client.callTool({ name: "Notes_All", arguments: {} });
    expect(structuredContent).toEqual({ result: ["milk"] });
  });
});

describe("tasks of agents", () => {
  test("[W33] a long command is a task, and its answer is found after the kernel was killed", async () => {
    const cwd = scratchFolder();
    const file = join(cwd, "notes.txt");
    const first = await KernelProcess.start(cwd, APP);
    const rpc = stdioRpc(cwd);
    const { result: created } = await rpc("tools/call", { name: "Notes_Import", arguments: { file } });
    expect(isCreateTaskResultV2(created) || created).toBe(true);
    expect(created?.["status"]).toBe("working");
    await first.kill();
    writeFileSync(file, "");
    await KernelProcess.start(cwd, APP);
    const get = async () => (await rpc("tasks/get", { taskId: created?.["taskId"] })).result;
    let task = await get();
    while (task?.["status"] === "working") task = await get();
    expect(isDetailedTaskV2(task) || task).toBe(true);
    expect(task).toMatchObject({ status: "completed", result: { structuredContent: { result: { count: 1 } } } });
  });

  test("[W33] a quick command of a client with tasks is answered at once, and a refusal too", async () => {
    const { rpc } = await httpKernel();
    const one = await rpc("one");
    const added = await one("tools/call", { name: "Notes_Add", arguments: { text: "milk" } });
    expect(added.result).toMatchObject({ resultType: "complete", structuredContent: { result: { count: 1 } } });
    const refused = await one("tools/call", { name: "Notes_Add", arguments: { text: "secret" } });
    expect(refused.result).toMatchObject({ isError: true });
    expect(JSON.stringify(refused.result)).toContain("FORBIDDEN_WORD");
  });

  test("[W33] a task is for the agent that began it", async () => {
    const { rpc } = await httpKernel();
    const [one, two] = [await rpc("one"), await rpc("two")];
    const file = join(scratchFolder(), "never");
    const { result } = await one("tools/call", { name: "Notes_Import", arguments: { file } });
    const taskId = result?.["taskId"];
    expect((await two("tasks/get", { taskId })).error?.message).toMatch(/no task/);
    expect((await one("tasks/get", { taskId: "unknown" })).error?.message).toMatch(/no task/);
    expect((await one("tasks/cancel", { taskId })).result).toBeDefined();
  });

  test("[W33] a command that was sent without a principal is the task of no agent", async () => {
    const { rpc, kernel } = await httpKernel();
    const one = await rpc("one");
    await kernel.command("Notes.Add", { text: "milk" });
    const { rows } = (await kernel.kernel.query("Kernel.Journal", { filter: "type:Notes.Add" })) as unknown as {
      rows: { message: { metadata: { id: string } } }[];
    };
    expect(rows).toHaveLength(1);
    const taskId = rows[0]?.message.metadata.id;
    expect(await kernel.kernel.query("Kernel.Request", { id: taskId as string })).toMatchObject({ state: "done" });
    expect((await one("tasks/get", { taskId })).error?.message).toMatch(/no task/);
  });
});

describe("resources of agents", () => {
  test("[W35] health, types, the journal and a trace can be read", async () => {
    const { agent } = await httpKernel();
    const client = await agent("agent");
    const names = (await client.listResources()).resources.map(({ uri }) => uri);
    for (const uri of names) {
      const { contents } = await client.readResource({ uri });
      expect(JSON.parse((contents[0] as { text: string }).text)).toBeDefined();
    }
    const { _meta } = await client.callTool({ name: "Notes_Add", arguments: { text: "milk" } });
    expect((await client.listResourceTemplates()).resourceTemplates).toHaveLength(4);
    const request = await client.readResource({ uri: `millrace://request/${_meta?.["millrace/requestId"]}` });
    expect(JSON.parse((request.contents[0] as { text: string }).text)).toMatchObject({ state: "done" });
    await expect(client.readResource({ uri: "millrace://nothing" })).rejects.toThrow(/known are/);
    for (const name of ["__proto__", "constructor", "constructor/x"])
      await expect(client.readResource({ uri: `millrace://${name}` }), name).rejects.toThrow(/known are/);
  });

  test("[W35] a view has no indents, so that a deep message is not many times longer", async () => {
    const { agent } = await httpKernel();
    const client = await agent("agent");
    const { contents } = await client.readResource({ uri: "millrace://health" });
    const { text } = contents[0] as { text: string };
    expect(text).toBe(JSON.stringify(JSON.parse(text)));
  });

  test("[W35] reading needs the scope read", async () => {
    const { agent } = await httpKernel();
    const client = await agent("agent", ["send"]);
    await expect(client.readResource({ uri: "millrace://health" })).rejects.toThrow(/lacks the scope read/);
  });
});

describe("millrace mcp", () => {
  test("[W30] [K11] millrace mcp needs types, and a running kernel", async () => {
    const cwd = scratchFolder();
    const mcp = (...args: string[]) =>
      runProgram(process.execPath, [MAIN, "mcp", ...args], { cwd, env: COMPILE_CACHE });
    expect(await mcp()).toMatchObject({ code: 2, stderr: expect.stringContaining("--expose 'Tasks.*'") });
    expect(await mcp("--expose", "Kernel.*")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("of the kernel"),
    });
    expect(await mcp("--expose", "Notes.*")).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("no kernel on"),
    });
  });
});

/** JSON-RPC with `millrace mcp`, line by line. */
function stdioRpc(cwd: string): Rpc {
  const args = [MAIN, "mcp", "--expose", EXPOSED];
  const child = spawn(process.execPath, args, { cwd, env: { ...process.env, ...COMPILE_CACHE } });
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let sent = 0;
  return async (method, params) => {
    sent += 1;
    child.stdin.write(`${JSON.stringify(requestOf(sent, method, params))}\n`);
    for (;;) {
      const { value, done } = await lines.next();
      if (done) throw new Error("millrace mcp ended");
      const answer = JSON.parse(value);
      if (answer.id === sent) return answer;
    }
  };
}

function requestOf(id: number, method: string, params: object) {
  return { jsonrpc: "2.0", id, method, params: { ...params, _meta: ENVELOPE } };
}
