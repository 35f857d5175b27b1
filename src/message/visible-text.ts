/**
 * Makes foreign text safe for terminals and logs. Ids, error texts and documents come from clients: unescaped they
 * could clear the screen, set the clipboard, reverse text, or look like a line of ours. SPEC: K59.
 *
 * Characters that move the cursor or change the text direction are written as in JSON (`\u001b`), so a line of JSON
 * keeps its value. A backslash is unchanged for the same reason; `--json` distinguishes `\u001b` in a text from the
 * character.
 *
 * Lookalikes are not handled: letters, combining marks, emoji and their joiners pass.
 */

/** ASCII and Latin 1 controls, line and paragraph separators, and bidirectional controls. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;
/** A line that begins at the margin. */
const FURTHER_LINE = /\n(?=\S)/g;

const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Escapes all controls, so that the text is one line. */
export function visibleLine(text: string): string {
  return text.replace(UNSEEN, escaped);
}

/** Keeps line breaks, and indents each further line, so that none looks like a line of ours. */
export function visibleLines(text: string): string {
  return text.split("\n").map(visibleLine).join("\n").replace(FURTHER_LINE, "\n  ");
}

function escaped(character: string): string {
  return SHORT[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
