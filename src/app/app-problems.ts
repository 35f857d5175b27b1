/** All problems of the result of an app's function, as sentences with a remedy. SPEC: A5. */

import { isMessageType } from "../message/envelope.ts";
import { unknownOption } from "../message/near-word.ts";
import { show } from "../message/problem.ts";
import { cronProblem } from "../work/cron.ts";
import { retryProblem } from "../work/retry-policy.ts";
import type { Definition } from "./definition.ts";
import { parseDuration } from "./duration.ts";
import { EventDefinition } from "./event-definition.ts";
import { OnDefinition, type OnOptions } from "./on.ts";
import { CommandDefinition, type CommandOptions, QueryDefinition } from "./request.ts";
import { type CronOptions, ScheduleDefinition } from "./schedule.ts";
import { WorkerDefinition, type WorkerOptions } from "./worker-commands.ts";

const KNOWN: Readonly<Record<keyof Definition, true>> = {
  ...{ description: true, commands: true, queries: true, on: true, schedules: true, events: true },
};

/** Names of `on` and `schedules`: durable, and part of a message type. */
const KEY = /^[a-z][A-Za-z0-9]*$/;

const COMMAND_OPTIONS: Readonly<Record<keyof CommandOptions, true>> = {
  ...{ description: true, timeout: true, concurrency: true },
};
const WORKER_OPTIONS: Readonly<Record<keyof WorkerOptions, true>> = { idempotent: true, timeout: true };
const QUERY_OPTIONS = { description: true } as const;
const ON_OPTIONS: Readonly<Record<keyof OnOptions, true>> = {
  ...{ retry: true, timeout: true, concurrency: true, failed: true },
};
const CRON_OPTIONS: Readonly<Record<keyof CronOptions, true>> = { timezone: true, missed: true };

export function appProblems(definition: Definition): string[] {
  const unknown = unknownOption(definition, KNOWN);
  if (unknown !== undefined) return [unknown];
  const { commands, queries, on, schedules, events } = definition;
  return [
    ...entries(commands).flatMap(([type, one]) => commandProblems(type, one)),
    ...entries(queries).flatMap(([type, one]) => queryProblems(type, one)),
    ...entries(on).flatMap(([key, one]) => onProblems(key, one)),
    ...entries(schedules).flatMap(([key, one]) => scheduleProblems(key, one)),
    ...entries(events).flatMap(([key, one]) =>
      one instanceof EventDefinition ? [] : [`events.${key}: must come from event("Name.Like", …), got ${show(one)}`],
    ),
  ];
}

function entries<T>(record: Readonly<Record<string, T>> | undefined): [string, T][] {
  return Object.entries(record ?? {});
}

function commandProblems(type: string, one: unknown): string[] {
  const problems = typeProblems("command", type);
  if (typeof one === "function") return problems;
  if (one instanceof WorkerDefinition)
    return [...problems, ...optionProblems(`command ${type}`, one.options as CommandOptions, WORKER_OPTIONS)];
  if (!(one instanceof CommandDefinition))
    return [
      ...problems,
      `command ${type}: must be a function (data, tx) => …, or command(schema, handler); got ${show(one)}`,
    ];
  return [...problems, ...optionProblems(`command ${type}`, one.options, COMMAND_OPTIONS)];
}

function queryProblems(type: string, one: unknown): string[] {
  const problems = typeProblems("query", type);
  if (typeof one === "function") return problems;
  if (!(one instanceof QueryDefinition))
    return [...problems, `query ${type}: must be a function (data) => …, or query(schema, handler); got ${show(one)}`];
  return [...problems, ...optionProblems(`query ${type}`, one.options, QUERY_OPTIONS)];
}

function typeProblems(kind: string, type: string): string[] {
  return isMessageType(type) ? [] : [`${kind} ${show(type)}: a name is two PascalCase words, like Shop.Order`];
}

function onProblems(key: string, one: unknown): string[] {
  const problems = keyProblems("on", key);
  if (!(one instanceof OnDefinition))
    return [...problems, `on.${key}: must come from on(event, handler), got ${show(one)}`];
  return [...problems, ...optionProblems(`on.${key}`, one.options, ON_OPTIONS)];
}

function scheduleProblems(key: string, one: unknown): string[] {
  const problems = keyProblems("schedules", key);
  if (!(one instanceof ScheduleDefinition))
    return [...problems, `schedules.${key}: must come from cron(pattern, handler), got ${show(one)}`];
  const { pattern, handler, options } = one;
  const unknown = unknownOption(options, CRON_OPTIONS) ?? cronProblem(pattern, options.timezone);
  if (unknown !== undefined) problems.push(`schedules.${key}: ${unknown}`);
  if (typeof handler !== "function") problems.push(`schedules.${key}: takes a function second, got ${show(handler)}`);
  if (!["once", "skip", undefined].includes(options.missed))
    problems.push(`schedules.${key}: missed is "once" or "skip", got ${show(options.missed)}`);
  return problems;
}

function keyProblems(part: string, key: string): string[] {
  return KEY.test(key) ? [] : [`${part}.${show(key)}: a name is a word like payment or dailyReport`];
}

function optionProblems(
  what: string,
  options: CommandOptions & OnOptions<never>,
  known: Readonly<Record<string, true>>,
): string[] {
  const unknown = unknownOption(options, known);
  if (unknown !== undefined) return [`${what}: ${unknown}`];
  const timeout = options.timeout === undefined ? 0 : parseDuration(options.timeout);
  return [
    ...(typeof timeout === "number" ? [] : [`${what}: timeout ${timeout.problem}`]),
    ...(typeof options.retry === "object" ? policyProblems(what, options.retry) : []),
    ...(["retry", "concurrency"] as const).flatMap((name) => {
      const value = options[name];
      if (typeof value === "object") return [];
      const isCount = value === undefined || (Number.isSafeInteger(value) && value >= 1);
      return isCount ? [] : [`${what}: ${name} must be a whole number of at least 1, got ${show(value)}`];
    }),
  ];
}

function policyProblems(what: string, retry: unknown): string[] {
  const problem = retryProblem(retry);
  return problem === undefined ? [] : [`${what}: ${problem}`];
}
