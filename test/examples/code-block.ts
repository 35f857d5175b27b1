/**
 * Code in Markdown, and its treatment. The words after the fence say:
 *
 * - `ts`: a program; it is run, and prints its last comment;
 * - `ts app.ts`: a file that the commands of the page use; it is written and type-checked;
 * - `yaml manifest.yaml`: the same, without types to check;
 * - `sh run`: commands after `$`, with their output; they are run in a folder of the page's own;
 * - `sh not-run: reason`, `ts not-run: reason`: only shown, with a reason;
 * - no word, or any other language: text. It may not look like a command.
 */

export interface CodeBlock {
  readonly page: string;
  /** Where it stands, usable as the name of a file: `README.md:12`. */
  readonly place: string;
  readonly code: string;
  readonly use:
    | { readonly kind: "program" }
    | { readonly kind: "file"; readonly name: string }
    | { readonly kind: "commands" }
    | { readonly kind: "not-run"; readonly reason: string }
    | { readonly kind: "text" };
}

export function codeBlocks(page: string, text: string): CodeBlock[] {
  return [...text.matchAll(/^```([^\n]*)\n(.*?)^```$/gms)].map((match) => {
    const line = text.slice(0, match.index).split("\n").length;
    const code = match[2] as string;
    return { page, place: `${page}:${line}`, code, use: useOf((match[1] as string).trim()) };
  });
}

function useOf(info: string): CodeBlock["use"] {
  const [language = "", ...words] = info.split(" ");
  const rest = words.join(" ");
  const [, reason] = rest.match(/^not-run: (.+)$/) ?? [];
  if (reason !== undefined) return { kind: "not-run", reason };
  if (language === "ts") return rest === "" ? { kind: "program" } : { kind: "file", name: rest };
  if (language === "yaml" && rest !== "") return { kind: "file", name: rest };
  if (language === "sh" && rest === "run") return { kind: "commands" };
  return { kind: "text" };
}

/** A block that looks like a command or a program, and neither runs nor gives a reason. */
export function isUnmarked({ use, code }: CodeBlock): boolean {
  return use.kind === "text" && /^\$ /m.test(code);
}

/** The lines after a last comment `// prints:`; undefined where a program does not say. */
export function saidOutput(code: string): string | undefined {
  const [, comments] = code.match(/^\/\/ prints:\n((?:\/\/.*\n?)*)$/m) ?? [];
  return comments?.replaceAll(/^\/\/ ?/gm, "").replace(/\n?$/, "\n");
}
