/**
 * The path of a user's message, apart from the bus: channel -> hook `user_message` -> agent -> hook `agent_response` ->
 * channel. In memory, not journaled. A hook that throws or hangs is logged, and the next one runs. SPEC: X28-X33.
 */
import type { Host } from "../host/host.ts";
import { EXTENSION_STEP_MS, HOOK_MS } from "../limits.ts";
import { show } from "../message/problem.ts";
import type { Activity } from "./activity.ts";
import { type AgentLimits, type AgentQuestion, AgentSlot } from "./agent-slot.ts";
import { ExtensionError, extensionReason } from "./extension-error.ts";
import type { Logger } from "./logger.ts";
import type { ChannelProvider, Tool } from "./providers.ts";
import { withinTime } from "./time-limit.ts";

export const HOOKS = ["user_message", "agent_response"] as const;
/** The points of a user's message at which hooks are called. */
export type HookName = (typeof HOOKS)[number];

/** The argument of a hook: the user's text, or the agent's. */
export interface HookCall {
  readonly text: string;
  readonly userId: string;
  readonly channelId: string;
}

/** A function that is called at one point of a user's message. */
export type Hook = (call: HookCall) => unknown;

export interface UserMessage extends HookCall {
  readonly correlation?: string | undefined;
}

interface RegisteredHook {
  readonly name: HookName;
  readonly owner: string;
  readonly hook: Hook;
}

export interface MessageRouterParts {
  readonly host: Host;
  readonly logger: Logger;
  readonly activity: Activity;
  /** The extension whose agent answers if several provide one; the first one's unless given. */
  readonly agent?: string | undefined;
  readonly agentLimits?: AgentLimits;
}

/** The default user of a channel that knows users by name, before the first message. */
const ANY_USER = "default";

export class MessageRouter {
  readonly agent: AgentSlot;
  readonly #host: Host;
  readonly #logger: Logger;
  /** In the order of registering. */
  readonly #channels = new Map<string, ChannelProvider>();
  /** The last user who wrote, by channel. */
  readonly #lastUsers = new Map<string, string>();
  readonly #tools = new Map<string, Tool>();
  #hooks: RegisteredHook[] = [];
  readonly #activity: Activity;

  constructor(parts: MessageRouterParts) {
    this.#host = parts.host;
    this.#logger = parts.logger;
    this.#activity = parts.activity;
    this.agent = new AgentSlot({
      ...parts,
      preferred: parts.agent,
      limits: parts.agentLimits ?? {},
      tools: () => [...this.#tools.values()],
    });
  }

  get channels(): readonly string[] {
    return [...this.#channels.keys()];
  }

  get tools(): readonly string[] {
    return [...this.#tools.keys()];
  }

  // Wiring; the returned function undoes it -------------------------------------------------------------------------

  registerChannel(id: string, channel: ChannelProvider): () => void {
    this.#channels.set(id, channel);
    return () => {
      this.#channels.delete(id);
      this.#lastUsers.delete(id);
    };
  }

  registerTool(owner: string, tool: Tool): () => void {
    const { name, description, execute } = tool ?? {};
    if (typeof name !== "string" || name === "" || typeof description !== "string" || typeof execute !== "function")
      throw new ExtensionError("EXTENSION_PROVIDER", `a tool of ${owner} needs name, description and execute`);
    if (this.#tools.has(name))
      throw new ExtensionError("EXTENSION_PROVIDER", `the tool ${show(name)} is another extension's; rename it`);
    this.#tools.set(name, tool);
    return () => {
      this.#tools.delete(name);
    };
  }

  subscribe(name: HookName, owner: string, hook: Hook): () => void {
    if (!HOOKS.includes(name))
      throw new ExtensionError(
        "EXTENSION_UNKNOWN_NAME",
        `there is no hook ${show(name)}; there are ${HOOKS.join(" and ")}; for events use subscribeEvent`,
      );
    if (typeof hook !== "function") throw new ExtensionError("EXTENSION_MISUSE", "a hook is a function");
    const registered: RegisteredHook = { name, owner, hook };
    this.#hooks.push(registered);
    return () => {
      this.#hooks = this.#hooks.filter((one) => one !== registered);
    };
  }

  /** Says whether there was one. */
  unsubscribe(name: HookName, owner: string, hook: Hook): boolean {
    const before = this.#hooks.length;
    this.#hooks = this.#hooks.filter((one) => one.name !== name || one.owner !== owner || one.hook !== hook);
    return this.#hooks.length < before;
  }

  // Messages --------------------------------------------------------------------------------------------------------

  /** Takes a user's message to the agent and its answer back; resolves with the answer. */
  handleUserMessage(message: UserMessage): Promise<string> {
    return this.#activity.during(() => this.#converse(message));
  }

  async #converse({ text, userId, channelId, correlation }: UserMessage): Promise<string> {
    this.#lastUsers.set(channelId, userId);
    await this.#callHooks("user_message", { text, userId, channelId });
    const answer = await this.#answerTo(text, correlation);
    await this.#callHooks("agent_response", { text: answer, userId, channelId });
    const channel = this.#channels.get(channelId);
    if (channel?.sendToUser) await this.#send(channelId, () => channel.sendToUser?.(userId, answer));
    return answer;
  }

  /** A user waits for a text: a failure of the agent is one, in brackets. */
  async #answerTo(text: string, correlation: string | undefined): Promise<string> {
    try {
      return await this.agent.invoke(text, { correlation, userMessage: text });
    } catch (thrown) {
      const isMissing = thrown instanceof ExtensionError && thrown.code === "EXTENSION_NO_AGENT";
      return isMissing ? "(No agent is there to answer)" : `(Error: ${extensionReason(thrown)})`;
    }
  }

  invokeAgent(prompt: string, question?: AgentQuestion): Promise<string> {
    return this.#activity.during(() => this.agent.invoke(prompt, question));
  }

  /**
   * Over the named channel, else the first one. Rejects where there is none: an event that carries the text has failed,
   * and can be requeued.
   */
  async notifyUser(text: string, channelId?: string): Promise<void> {
    if (typeof text !== "string") throw new ExtensionError("EXTENSION_MISUSE", `a text is needed, got ${show(text)}`);
    const id = channelId ?? this.channels[0];
    const channel = id === undefined ? undefined : this.#channels.get(id);
    if (channel !== undefined && id !== undefined) {
      const user = this.#lastUsers.get(id) ?? ANY_USER;
      await this.#send(id, () => (channel.sendMessage ? channel.sendMessage(text) : channel.sendToUser?.(user, text)));
      return;
    }
    if (channelId === undefined)
      throw new ExtensionError(
        "EXTENSION_NO_CHANNEL",
        "there is no channel to the user; start an extension that is one, and requeue the event",
      );
    throw new ExtensionError(
      "EXTENSION_UNKNOWN_NAME",
      `there is no channel ${show(channelId)}; there are ${this.channels.join(", ") || "none"}`,
    );
  }

  async #send(channelId: string, send: () => unknown): Promise<void> {
    await withinTime({ host: this.#host, limitMs: EXTENSION_STEP_MS, what: `sending over ${channelId}` }, send);
  }

  async #callHooks(name: HookName, call: HookCall): Promise<void> {
    const frozen = Object.freeze({ ...call });
    for (const { owner, hook } of this.#hooks.filter((one) => one.name === name)) {
      try {
        await withinTime({ host: this.#host, limitMs: HOOK_MS, what: `hook ${name} of ${owner}` }, () => hook(frozen));
      } catch (thrown) {
        this.#logger.error(`hook ${name} of ${owner} failed: ${extensionReason(thrown)}`);
      }
    }
  }
}
