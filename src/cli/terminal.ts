/**
 * Where the command writes: plain lines to stdout, complaints to stderr. Colour only on a terminal and never under NO_COLOR,
 * which `styleText` sees to for the stream that it is given.
 *
 * What is written holds text of others, so nothing of it reaches the terminal as anything but text, here and not where each line is made:
 * of what would drive it only the codes of the styles below pass, and only where there are colours. SPEC: K13, K59.
 */
import { styleText } from "node:util";
import { visibleLine, visibleLines } from "../message/visible-text.ts";

const CLEAR_LINE = "\r\u001b[K";
/** What `styleText` makes of the styles below. In a text of others they make it red or bold, to the end of its line. */
const STYLE_CODE = /(\u001b\[(?:1|2|22|31|32|39)m)/;
const PLAIN = "\u001b[0m";

export interface Terminal {
  /** One line, whatever is in it: a line break in a text of others makes no further one. */
  line(text?: string): void;
  /** What has several lines (where an error comes from) keeps them. */
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
    styleText(format, visibleLine(text), { stream: process.stdout });
  const strong = style("bold");
  const visible = strong("x") === "x" ? visibleLine : visibleStyled;
  const shows = process.stderr.isTTY === true;
  let shown = false;
  const clear = () => {
    if (shown) process.stderr.write(CLEAR_LINE);
    shown = false;
  };
  return {
    line: (text = "") => {
      clear();
      process.stdout.write(`${visible(text)}\n`);
    },
    complain: (text) => {
      clear();
      process.stderr.write(`millrace: ${visibleLines(text)}\n`);
    },
    progress: (text) => {
      if (!shows) return;
      process.stderr.write(`${CLEAR_LINE}${visibleLine(text)}`);
      shown = true;
    },
    strong,
    faint: style("dim"),
    good: style("green"),
    bad: style("red"),
  };
}

function visibleStyled(text: string): string {
  const parts = text.split(STYLE_CODE);
  if (parts.length === 1) return visibleLine(text);
  // Codes stand between the parts that are text.
  return parts.map((part, i) => (i % 2 === 1 ? part : visibleLine(part))).join("") + PLAIN;
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
