/**
 * The agent's slot: at most one agent answers at a time. Offered by extensions in their order; the first that is there
 * has the slot. An agent that fails, and a missing one, reject. The path of a user's message turns that into a text.
 * SPEC: X31, X32.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Host } from "../host/host.ts";
import { AGENT_INVOKE_MS, AGENT_WAITING_MAX } from "../limits.ts";
import { show } from "../message/problem.ts";
import { ExtensionError, extensionReason } from "./extension-error.ts";
import type { Logger } from "./logger.ts";
import type { AgentProvider, AgentResponse, AgentTool, Tool } from "./providers.ts";
import { withinTime } from "./time-limit.ts";

export interface AgentOffer {
  readonly extensionId: string;
  readonly agent: AgentProvider;
}

export interface AgentQuestion {
  readonly correlation?: string | undefined;
  readonly userMessage?: string | undefined;
  /** Ends the waiting, and reaches the agent and its tools. */
  readonly signal?: AbortSignal | undefined;
  /** Told when the agent is asked: the waiting before is over. Also when it is not asked after all. */
  readonly begin?: (() => void) | undefined;
}

export interface AgentLimits {
  /** An answer that takes longer has failed. */
  readonly agentInvokeMs?: number;
  /** Questions that wait for the agent; the next one is refused. */
  readonly agentWaitingMax?: number;
}

export class AgentSlot {
  readonly #host: Host;
  readonly #logger: Logger;
  readonly #tools: () => readonly Tool[];
  readonly #preferred: string | undefined;
  #offers: AgentOffer[] = [];
  /** Resolves when the last one that was let in is through. */
  #tail: Promise<unknown> = Promise.resolve();
  /** Running and waiting; at most one more than may wait. */
  #inside = 0;
  /** Set in the code that the agent calls. */
  readonly #answering = new AsyncLocalStorage<true>();

  readonly #limits: Required<AgentLimits>;

  constructor(parts: {
    host: Host;
    logger: Logger;
    tools: () => readonly Tool[];
    preferred?: string | undefined;
    limits?: AgentLimits;
  }) {
    this.#limits = { agentInvokeMs: AGENT_INVOKE_MS, agentWaitingMax: AGENT_WAITING_MAX, ...parts.limits };
    this.#host = parts.host;
    this.#logger = parts.logger;
    this.#tools = parts.tools;
    this.#preferred = parts.preferred;
  }

  /** The extension that provides the agent. */
  get holder(): string | undefined {
    return this.#current()?.extensionId;
  }

  /** Returns how to take it back. */
  offer(offer: AgentOffer): () => void {
    this.#offers.push(offer);
    return () => {
      this.#offers = this.#offers.filter((one) => one !== offer);
    };
  }

  async invoke(prompt: string, question: AgentQuestion = {}): Promise<string> {
    if (typeof prompt !== "string")
      throw new ExtensionError("EXTENSION_MISUSE", `a prompt is a text, got ${show(prompt)}`);
    if (this.#answering.getStore())
      throw new ExtensionError(
        "EXTENSION_AGENT_BUSY",
        "the agent was invoked by itself and would wait for ever; emit system.agent.background instead",
      );
    const { agentWaitingMax } = this.#limits;
    if (this.#inside > agentWaitingMax)
      throw new ExtensionError("EXTENSION_AGENT_FAILED", `more than ${agentWaitingMax} wait for the agent; ask later`);
    this.#inside++;
    const turn = this.#tail.then(() => this.#answer(prompt, question));
    this.#tail = turn.catch(() => undefined);
    try {
      return await turn;
    } finally {
      question.begin?.();
      this.#inside--;
    }
  }

  #current(): AgentOffer | undefined {
    return this.#offers.find(({ extensionId }) => extensionId === this.#preferred) ?? this.#offers[0];
  }

  async #answer(prompt: string, { signal: until, begin, ...question }: AgentQuestion): Promise<string> {
    const current = this.#current();
    if (current === undefined)
      throw new ExtensionError("EXTENSION_NO_AGENT", "no agent is there to answer; start an extension that is one");
    begin?.();
    const what = `the agent of ${current.extensionId}`;
    const limit = { host: this.#host, limitMs: this.#limits.agentInvokeMs, what, ...(until && { signal: until }) };
    try {
      const response = await withinTime(limit, (signal) => {
        const tools = this.#tools().map((tool) => withSignal(tool, signal));
        return this.#answering.run(true, () => current.agent.invoke(prompt, { ...question, tools, signal }));
      });
      return textOf(response);
    } catch (thrown) {
      this.#logger.error(`${what} failed: ${extensionReason(thrown)}`);
      throw new ExtensionError("EXTENSION_AGENT_FAILED", extensionReason(thrown));
    }
  }
}

/** A tool that is told when its agent is not waited for any more. */
function withSignal(tool: Tool, signal: AbortSignal): AgentTool {
  return { ...tool, execute: (input) => tool.execute(input, { signal }) };
}

function textOf(response: AgentResponse | string): string {
  if (typeof response === "string") return response;
  if (response?.status === "error")
    throw new ExtensionError("EXTENSION_PROVIDER", response.error || (response.content ?? "it says error"));
  if (typeof response?.content === "string") return response.content;
  throw new ExtensionError(
    "EXTENSION_PROVIDER",
    `an agent answers with a text or {status, content}, not ${show(response)}`,
  );
}
