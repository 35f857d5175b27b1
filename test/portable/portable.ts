/**
 * `#test` on Deno and Bun: the part of Vitest's surface that the core's tests use, over Vitest's own `expect`. Tests
 * are collected when their file is imported and run by `run.ts`, one after the other.
 */
import { ChaiStyleAssertions, JestAsymmetricMatchers, JestChaiExpect, JestExtend } from "@vitest/expect";
import * as chai from "chai";

chai.use(JestExtend);
chai.use(JestChaiExpect);
chai.use(ChaiStyleAssertions);
chai.use(JestAsymmetricMatchers);

type Body = () => unknown;

export interface CollectedTest {
  readonly name: string;
  readonly body: Body;
}

export const collected: CollectedTest[] = [];
const groups: string[] = [];

export function describe(name: string, body: () => void): void {
  groups.push(name);
  body();
  groups.pop();
}

/** Vitest's order of arguments: a time limit, where given, comes last and is left to the runner. */
export function test(name: string, body: Body, _timeoutMs?: number): void {
  collected.push({ name: [...groups, name].join(" > "), body });
}

export const expect: typeof import("vitest").expect = chai.expect as never;
