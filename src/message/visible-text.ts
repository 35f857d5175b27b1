/**
 * Text of others as a terminal and a log may show it. Ids, error texts and documents hold what somebody sent: as it is, it could clear the
 * screen, set the clipboard, reverse what stands beside it, or look like a line that is ours. SPEC: K59.
 *
 * What moves a cursor or an order is written as JSON writes it (`\u001b`), so that a line of JSON stays one, with the same value. A backslash is left
 * as it is for the same reason: whoever has to tell `\u001b` in a text from the character asks for `--json`.
 *
 * Deliberately not about what merely looks alike: letters, combining marks, emoji and the marks that join them pass.
 */

/** Controls of ASCII and of Latin 1, separators of lines and paragraphs, and what turns the direction of text around. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;
/** A line that begins at the margin. */
const FURTHER_LINE = /\n(?=\S)/g;

const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** On one line, whatever it holds. */
export function visibleLine(text: string): string {
  return text.replace(UNSEEN, escaped);
}

/** Its lines stay lines, and none of them begins where a line of ours would. */
export function visibleLines(text: string): string {
  return text.split("\n").map(visibleLine).join("\n").replace(FURTHER_LINE, "\n  ");
}

function escaped(character: string): string {
  return SHORT[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
