/**
 * Output of the command: lines to stdout, errors to stderr. Colour only on a terminal and never under NO_COLOR, which
 * `styleText` checks per stream.
 *
 * Output contains foreign text, so control characters are escaped here, for every line: only the codes of the styles
 * below pass, and only with colours. SPEC: K13, K59.
 */
import { styleText } from "node:util";
import { visibleLine, visibleLines } from "../message/visible-text.ts";

const CLEAR_LINE = "\r\u001b[K";
/** The codes of the styles below. In foreign text they colour at most the rest of its line. */
const STYLE_CODE = /(\u001b\[(?:1|2|22|31|32|39)m)/;
const PLAIN = "\u001b[0m";

export interface Terminal {
  /** One line: line breaks in foreign text are escaped. */
  line(text?: string): void;
  /** Keeps the line breaks of a text with several lines (the place of an error). */
  complain(text: string): void;
  /** Progress of long work: one line that overwrites itself, only on a terminal. The next line clears it. */
  progress(text: string): void;
  strong(text: string): string;
  faint(text: string): string;
  good(text: string): string;
  bad(text: string): string;
}

export function processTerminal(): Terminal {
  process.stdout.on("error", outputFailed);
  // No output is left for this error.
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
  // Codes are between the text parts.
  return parts.map((part, i) => (i % 2 === 1 ? part : visibleLine(part))).join("") + PLAIN;
}

/** Reported once per reason: a kernel whose log cannot be written continues. */
const told = new Set<string | undefined>();

function outputFailed({ code, message }: NodeJS.ErrnoException): void {
  // A reader that stops early (`| head`) is not an error.
  if (code === "EPIPE") process.exit(0);
  // The terminal is gone, and its signal follows.
  if (code === "EIO" || told.has(code)) return;
  told.add(code);
  process.stderr.write(`millrace: its output cannot be written: ${message}\n`);
  // The output was lost, so the exit code must show a failure.
  process.once("exit", () => {
    process.exitCode ||= 1;
  });
}
