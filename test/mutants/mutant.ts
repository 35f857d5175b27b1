/** A planted bug (mutant): one change of one file of `src/` that breaks a promise, and the tests that must notice. */
export interface Mutant {
  /** Kebab-case; `npm run mutants -- NAME` runs it. */
  readonly name: string;
  /** The rule of the spec that it breaks. */
  readonly breaks: string;
  readonly file: string;
  /** Stands in the file exactly once. */
  readonly find: string;
  readonly replace: string;
  /** Test files or folders of which at least one test must fail. */
  readonly tests: readonly string[];
}

/** The file with the bug in it; throws if the list is out of date. */
export function plantIn(text: string, { name, file, find, replace }: Mutant): string {
  const found = text.split(find).length - 1;
  if (found === 1) return text.replace(find, () => replace);
  const problem = found === 0 ? "is no longer in" : `stands ${found} times in`;
  const excerpt = JSON.stringify(find.length > 60 ? `${find.slice(0, 60)}…` : find);
  throw new Error(`mutant ${name}: its text ${excerpt} ${problem} ${file}; update the list in test/mutants/`);
}
