/** Reads of the change log. */
import type { DocumentPatch } from "../commit.ts";
import type { DatabaseLink } from "./link.ts";

export interface LoggedCommit {
  readonly sequence: number;
  readonly session: string;
  readonly patches: readonly DocumentPatch[];
}

/** Commits of the change log after a sequence, oldest first. */
export async function commitsAfter(
  link: DatabaseLink,
  m: string,
  space: string,
  after: number,
): Promise<LoggedCommit[]> {
  const rows = await link.query(`SELECT first, commits FROM ${m}.change WHERE space = $1 AND last > $2 ORDER BY last`, [
    space,
    after,
  ]);
  return rows.flatMap(({ first, commits }) => {
    const [session, list] = JSON.parse(String(commits)) as [string, [number, DocumentPatch[], unknown][]];
    return list
      .map(([, patches], at) => ({ sequence: Number(first) + at, session, patches }))
      .filter(({ sequence }) => sequence > after);
  });
}
