/**
 * Where the command writes: plain lines to stdout, complaints to stderr. Colour only on a terminal and never under NO_COLOR,
 * which `styleText` sees to for the stream that it is given.
 */
import { styleText } from "node:util";

const CLEAR_LINE = "\r\u001b[K";

export interface Terminal {
  line(text?: string): void;
  complain(text: string): void;
  /** How far long work is: one line that overwrites itself, on a terminal only. The next line or complaint clears it. */
  progress(text: string): void;
  strong(text: string): string;
  faint(text: string): string;
  good(text: string): string;
  bad(text: string): string;
}

export function processTerminal(): Terminal {
  process.stdout.on("error", outputFailed);
  // There is nobody left who could be told.
  process.stderr.on("error", () => undefined);
  const style = (format: Parameters<typeof styleText>[0]) => (text: string) =>
    styleText(format, text, { stream: process.stdout });
  const shows = process.stderr.isTTY === true;
  let shown = false;
  const clear = () => {
    if (shown) process.stderr.write(CLEAR_LINE);
    shown = false;
  };
  return {
    line: (text = "") => {
      clear();
      process.stdout.write(`${text}\n`);
    },
    complain: (text) => {
      clear();
      process.stderr.write(`millrace: ${text}\n`);
    },
    progress: (text) => {
      if (!shows) return;
      process.stderr.write(`${CLEAR_LINE}${text}`);
      shown = true;
    },
    strong: style("bold"),
    faint: style("dim"),
    good: style("green"),
    bad: style("red"),
  };
}

/** Once for each reason: a kernel whose log cannot be written goes on all the same, and says so no more than once. */
const told = new Set<string | undefined>();

function outputFailed({ code, message }: NodeJS.ErrnoException): void {
  // Whoever reads us may stop early (`| head`): that is the end of our work, not an error.
  if (code === "EPIPE") process.exit(0);
  // The terminal is gone, and the signal that says so is on its way.
  if (code === "EIO" || told.has(code)) return;
  told.add(code);
  process.stderr.write(`millrace: what it has to say cannot be written: ${message}\n`);
  // Whatever else becomes of it, it has failed: nobody has heard how it ended.
  process.once("exit", () => {
    process.exitCode ||= 1;
  });
}
