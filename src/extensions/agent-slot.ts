/**
 * The agent's slot: at most one agent answers at a time, whoever asks. Offered by extensions in their order; the first that is there has the
 * slot. What the agent throws, and that there is none, is an answer in brackets, not an error: a user is waiting for a text. SPEC: X31, X32.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Host } from "../host/host.ts";
import { AGENT_INVOKE_MS, AGENT_WAITING_MAX } from "../limits.ts";
import { show } from "../message/problem.ts";
import type { AgentProvider, AgentResponse, Tool } from "./extension.ts";
import { ExtensionError, reasonOf } from "./extension-error.ts";
import type { Logger } from "./logger.ts";
import { within } from "./time-limit.ts";

export interface AgentOffer {
  readonly extensionId: string;
  readonly agent: AgentProvider;
}

export interface AgentQuestion {
  readonly correlation?: string | undefined;
  readonly userMessage?: string | undefined;
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
  /** Set in everything that the agent calls. */
  readonly #answering = new AsyncLocalStorage<true>();

  constructor(parts: { host: Host; logger: Logger; tools: () => readonly Tool[]; preferred?: string | undefined }) {
    this.#host = parts.host;
    this.#logger = parts.logger;
    this.#tools = parts.tools;
    this.#preferred = parts.preferred;
  }

  /** Whose agent answers. */
  get holder(): string | undefined {
    return this.#current()?.extensionId;
  }

  /** Call what is returned to take it back. */
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
    if (this.#inside > AGENT_WAITING_MAX) return `(Error: more than ${AGENT_WAITING_MAX} wait for the agent)`;
    this.#inside++;
    const turn = this.#tail.then(() => this.#answer(prompt, question));
    this.#tail = turn;
    try {
      return await turn;
    } finally {
      this.#inside--;
    }
  }

  #current(): AgentOffer | undefined {
    return this.#offers.find(({ extensionId }) => extensionId === this.#preferred) ?? this.#offers[0];
  }

  async #answer(prompt: string, question: AgentQuestion): Promise<string> {
    const current = this.#current();
    if (current === undefined) return "(No agent is there to answer)";
    const limit = { host: this.#host, limitMs: AGENT_INVOKE_MS, what: `the agent of ${current.extensionId}` };
    try {
      const response = await within(limit, (signal) =>
        this.#answering.run(true, () => current.agent.invoke(prompt, { ...question, tools: this.#tools(), signal })),
      );
      return textOf(response);
    } catch (thrown) {
      this.#logger.error(`the agent of ${current.extensionId} failed: ${reasonOf(thrown)}`);
      return `(Error: ${reasonOf(thrown)})`;
    }
  }
}

function textOf(response: AgentResponse | string): string {
  if (typeof response === "string") return response;
  if (response?.status === "error") return response.content ?? `(Error: ${response.error})`;
  if (typeof response?.content === "string") return response.content;
  throw new ExtensionError(
    "EXTENSION_PROVIDER",
    `an agent answers with a text or {status, content}, not ${show(response)}`,
  );
}
