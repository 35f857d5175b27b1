/**
 * Text format of a block of changes: consecutive commits of one space, one line each. Below it is a line for each
 * changed document, with the sequence of that document's previous change (0 for the first) and the operations.
 *
 *   @17 3 1204                        sequence, session row, local sequence, and the label writes if there are any
 *   12 9 [{"op":"set",…}]             document row, sequence of its previous change, operations
 *   13 +0 [{"op":"set",…}]            the same; `+` marks a patch that creates or removes the document's value
 *
 * Our JSON has no line breaks, so a patch is found by a search for the start of its line, without parsing the rest.
 * Every line begins with the break, the first one too.
 */

/**
 * A base up to this size is also stored in the document's row: several of them fit a page. `schema.ts` has the same
 * number.
 */
export const ROW_BASE_BYTES_MAX = 512;
/** The start of a patch that sets its whole document. */
const WHOLE_SET = '[{"op":"set","path":[],';

/** A parsed commit line. */
export interface CommitLine {
  readonly sequence: number;
  readonly session: number;
  readonly localSequence: number;
  /** JSON of the label writes. */
  readonly labels: string | undefined;
}

export interface PatchLine {
  readonly document: number;
  readonly previous: number;
  /** Whether it creates or removes the document's value. */
  readonly turns: boolean;
  /** JSON of the operations. */
  readonly text: string;
}

export interface CommitLines extends CommitLine {
  readonly patches: readonly PatchLine[];
}

export interface FoundPatch {
  readonly session: number;
  readonly previous: number;
  /** JSON of the operations. */
  readonly text: string;
}

export function commitLine({ sequence, session, localSequence, labels }: CommitLine): string {
  const line = `\n@${sequence} ${session} ${localSequence}`;
  return labels === undefined ? line : `${line} ${labels}`;
}

export function patchLine({ document, previous, turns, text }: PatchLine): string {
  return `\n${document} ${turns ? "+" : ""}${previous} ${text}`;
}

/** The patch of one commit for one document; undefined if it is not in the block. */
export function findPatch(text: string, sequence: number, document: number): FoundPatch | undefined {
  const from = text.indexOf(`\n@${sequence} `);
  if (from < 0) return undefined;
  const next = text.indexOf("\n@", from + 1);
  const line = text.indexOf(`\n${document} `, from + 1);
  if (line < 0 || (next >= 0 && line > next)) return undefined;
  const patch = readPatch(lineAt(text, line));
  return { session: readCommit(lineAt(text, from)).session, previous: patch.previous, text: patch.text };
}

/** All commits of a block, in order. */
export function commitsIn(text: string): CommitLines[] {
  const commits: (CommitLine & { readonly patches: PatchLine[] })[] = [];
  for (const line of text.slice(1).split("\n")) {
    if (line.startsWith("@")) commits.push({ ...readCommit(line), patches: [] });
    else commits.at(-1)?.patches.push(readPatch(line));
  }
  return commits;
}

export interface PatchPlace {
  readonly sequence: number;
  readonly document: number;
}

/**
 * The patches that a load may need after the feed has passed them: all but small bases, which are in the rows of their
 * documents. Decided by the start of the line, because most commits write a receipt, which needs no lookup.
 */
export function lastingIn(text: string): PatchPlace[] {
  const lasting: PatchPlace[] = [];
  let sequence = 0;
  for (const line of text.slice(1).split("\n")) {
    if (line.startsWith("@")) sequence = Number.parseInt(line.slice(1), 10);
    else if (!isRowBase(line)) lasting.push({ sequence, document: Number.parseInt(line, 10) });
  }
  return lasting;
}

/** Whether a patch line is a base that is also in its document's row; false if unsure. */
function isRowBase(line: string): boolean {
  const start = line.indexOf(" ", line.indexOf(" ") + 1) + 1;
  return line.startsWith(WHOLE_SET, start) && Buffer.byteLength(line) - start <= ROW_BASE_BYTES_MAX;
}

/** Rows of the documents that commits after a sequence created or removed. */
export function turnedIn(text: string, after: number): number[] {
  const turned: number[] = [];
  let sequence = 0;
  for (const line of text.slice(1).split("\n")) {
    if (line.startsWith("@")) sequence = Number.parseInt(line.slice(1), 10);
    else if (sequence > after && line[line.indexOf(" ") + 1] === "+") turned.push(Number.parseInt(line, 10));
  }
  return turned;
}

export function blockText(commits: readonly CommitLines[]): string {
  return commits.map((commit) => commitLine(commit) + commit.patches.map(patchLine).join("")).join("");
}

/** Without the leading break. */
function lineAt(text: string, at: number): string {
  const end = text.indexOf("\n", at + 1);
  return end < 0 ? text.slice(at + 1) : text.slice(at + 1, end);
}

function readCommit(line: string): CommitLine {
  const [sequence, session, localSequence, labels] = parts(line.slice(1), 3);
  return { sequence: Number(sequence), session: Number(session), localSequence: Number(localSequence), labels };
}

function readPatch(line: string): PatchLine {
  const [document, previous, text = ""] = parts(line, 2);
  return { document: Number(document), previous: Number(previous), turns: previous?.startsWith("+") === true, text };
}

/** The first `words` words of a line, and the rest. */
function parts(line: string, words: number): (string | undefined)[] {
  const found: string[] = [];
  let at = 0;
  while (found.length < words) {
    const end = line.indexOf(" ", at);
    if (end < 0) return [...found, line.slice(at)];
    found.push(line.slice(at, end));
    at = end + 1;
  }
  return [...found, line.slice(at)];
}
