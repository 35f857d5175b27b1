/**
 * `millrace extension restart NAME`: restarts an extension in ERROR without restarting the kernel. SPEC: K97.
 */
import type { KernelHealth } from "../kernel/kernel-options.ts";
import { connectKernel } from "./connection.ts";
import { EXIT, type ExitCode, JSON_OPTION, UsageError, type Verb, type VerbCall } from "./verb.ts";

export const extension: Verb = {
  name: "extension",
  usage: "restart NAME [--json]",
  summary: "start an extension in ERROR again, from its files as they are now",
  example: "millrace extension restart inbox",
  options: { json: JSON_OPTION },
  wordsMax: 2,
  run,
};

async function run(call: VerbCall): Promise<ExitCode> {
  const { words, options, terminal } = call;
  const [deed, id] = words;
  if (deed !== "restart") throw new UsageError("usage: millrace extension restart NAME");
  if (id === undefined) throw new UsageError('name an extension; "millrace ls extensions" lists them');
  await using client = await connectKernel(call);
  const answer = (await client.command("Kernel.RestartExtension", { id })) as never as Pick<KernelHealth, "extensions">;
  if (options["json"]) terminal.line(JSON.stringify(answer));
  for (const { id: name, state, reason } of options["json"] ? [] : answer.extensions) {
    if (state === "ACTIVE") terminal.line(`${name} is ACTIVE`);
    else terminal.complain(`${name} is ${state}: ${reason ?? "it is disabled"}`);
  }
  return answer.extensions.every(({ state }) => state === "ACTIVE") ? EXIT.ok : EXIT.failed;
}
