/** TypeScript in Markdown, and what a program says that it prints. */

export interface CodeBlock {
  /** Where it stands, usable as the name of a file: `README.md:12`. */
  readonly place: string;
  readonly code: string;
}

export function typescriptBlocks(file: string, text: string): CodeBlock[] {
  return [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map((match) => {
    const line = text.slice(0, match.index).split("\n").length;
    return { place: `${file}:${line}`, code: match[1] as string };
  });
}

/** The lines after a last comment `// prints:`; undefined where a program does not say. */
export function saidOutput(code: string): string | undefined {
  const [, comments] = code.match(/^\/\/ prints:\n((?:\/\/.*\n?)*)$/m) ?? [];
  return comments?.replaceAll(/^\/\/ ?/gm, "").replace(/\n?$/, "\n");
}
