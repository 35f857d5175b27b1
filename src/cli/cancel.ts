/**
 * `millrace cancel <timer>`: cancels a timer that has not fired. A request cannot be cancelled here: only its requester
 * may end the wait (N1), and running work is not interrupted. SPEC: K44.
 */
import { withOwner } from "./journal-owner.ts";
import { EXIT, type ExitCode, JSON_OPTION, UsageError, type Verb, type VerbCall } from "./verb.ts";

export const cancel: Verb = {
  name: "cancel",
  usage: "<timer id> [--json]",
  summary: "cancel a timer that has not fired yet",
  example: "millrace cancel 019a8b5c-6d7e-7f80-8a9b-0c1d2e3f4a5b",
  options: { json: JSON_OPTION },
  wordsMax: 1,
  run,
};

async function run(call: VerbCall): Promise<ExitCode> {
  const [timerId] = call.words;
  if (timerId === undefined) throw new UsageError('name a timer; "millrace ls timers" lists them');
  const cancelled = await withOwner(call, (owner) => owner.cancelTimer(timerId));
  if (call.options["json"]) call.terminal.line(JSON.stringify({ timerId, cancelled }));
  else if (cancelled) call.terminal.line("cancelled");
  else
    call.terminal.complain(
      `no timer ${timerId} is waiting: it has fired, was cancelled, or never was; millrace ls timers`,
    );
  return cancelled ? EXIT.ok : EXIT.failed;
}
