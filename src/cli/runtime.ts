/**
 * The runtime of the command. Bun and Deno also report the version of Node that they imitate.
 */
const RUNTIMES = ["bun", "deno"] as const;

type Versions = Readonly<Record<string, string | undefined>>;

/** `node 24.21.0`, `bun 1.3.2`, `deno 2.5.6` */
export function runtimeVersion(versions: Versions = process.versions): string {
  const name = RUNTIMES.find((candidate) => versions[candidate] !== undefined) ?? "node";
  return `${name} ${versions[name]}`;
}

/** The same with the major version only. */
export function runtimeName(versions: Versions = process.versions): string {
  return runtimeVersion(versions).split(".", 1)[0] as string;
}
