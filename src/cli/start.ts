/**
 * `millrace start`. There is no kernel to keep running yet, so it does what can be done: opens the store, runs the self-check
 * on it, says what stands and what does not, and ends.
 */
import { systemHost } from "../host/system-host.ts";
import { dataDirectory, exposure, makeDataDirectory } from "../kernel/data-directory.ts";
import { DURABILITY, openStore } from "../kernel/open-store.ts";
import { ROOMS } from "../kernel/rooms.ts";
import { type SelfCheck, selfCheck } from "../kernel/self-check.ts";
import type { Terminal } from "./terminal.ts";
import { EXIT, type ExitCode, type Verb, type VerbCall } from "./verb.ts";
import { packageVersion } from "./version.ts";

export const start: Verb = {
  name: "start",
  usage: "",
  summary: "open the store, run the self-check on it, and say what is built so far",
  options: {},
  wordsMax: 0,
  run,
};

async function run({ environment, terminal }: VerbCall): Promise<ExitCode> {
  const host = systemHost();
  const began = host.monotonic();
  const directory = dataDirectory(environment);
  makeDataDirectory(directory);
  await using store = await openStore(host, directory.databaseFile);
  const readyMs = Math.round(host.monotonic() - began);
  const [nodeMajor] = process.versions.node.split(".");
  terminal.line(
    `${terminal.strong(`millrace ${packageVersion()}`)} · node ${nodeMajor} · store ${directory.databaseFile} (${store.backend}, durability ${DURABILITY}) · ready in ${readyMs} ms`,
  );

  const exposed = exposure(directory);
  if (exposed) terminal.complain(exposed);
  const checkBegan = host.monotonic();
  const check = await selfCheck(store, host);
  const counts = await store.count();
  terminal.line(`  self-check  ${checkText(check)}, ${Math.round(host.monotonic() - checkBegan)} ms`);
  terminal.line(`  account     ${accountText(check, terminal)}`);
  const { pending, processing, done, failed } = counts;
  terminal.line(
    `  journal     ${plural(pending + processing + done + failed, "event")}: ${done} done, ${pending} pending, ${processing} in hand, ${failed} failed`,
  );
  sayRooms(terminal);
  return addsUp(check) ? EXIT.ok : EXIT.failed;
}

function checkText({ publishedNow, finishedNow }: SelfCheck): string {
  const left = finishedNow > 0 ? `, and ${finishedNow} that an earlier start had left behind` : "";
  return `${plural(publishedNow, "event")} published, handled and settled, each handling one commit with its receipt${left}`;
}

function accountText(check: SelfCheck, terminal: Terminal): string {
  const { starts, published, handled, waiting } = check;
  const sum = `${lost(check)} lost, ${handledTwice(check)} handled twice`;
  const verdict = addsUp(check) ? terminal.good(sum) : terminal.bad(sum);
  const held = waiting > 0 ? `, ${waiting} held by another process or one just killed` : "";
  const times = starts === 1 ? "first" : ordinal(starts);
  return `started for the ${times} time; ${plural(published, "event")} published, ${handled} handled${held}: ${verdict}`;
}

function lost({ published, handled, waiting }: SelfCheck): number {
  return Math.max(0, published - handled - waiting);
}

function handledTwice({ published, handled, waiting }: SelfCheck): number {
  return Math.max(0, handled + waiting - published);
}

function addsUp({ published, handled, waiting }: SelfCheck): boolean {
  return published === handled + waiting;
}

function sayRooms(terminal: Terminal): void {
  const named = (built: boolean) =>
    ROOMS.filter((room) => room.built === built)
      .map(({ name }) => name)
      .join(", ");
  terminal.line(`  built       ${named(true)}`);
  terminal.line(`  not yet     ${named(false)}`);
  terminal.line();
  terminal.line("There is no daemon yet: it comes with the kernel. Until then this is all that start does.");
  terminal.line("Try again, or kill it half-way: the account goes on. Look around with: npx millrace ls events");
}

function plural(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

function ordinal(count: number): string {
  const ending = { one: "st", two: "nd", few: "rd", other: "th" } as const;
  const rule = new Intl.PluralRules("en", { type: "ordinal" }).select(count);
  return `${count.toLocaleString("en")}${ending[rule as keyof typeof ending]}`;
}
