/** Types of `installed.mjs`, for the tests. */
export interface Versions {
  readonly node: string;
  readonly sqlite?: string | undefined;
}
export const SQLITE_VERSION_MIN: string;
export function suffices(versions: Versions): boolean;
export function selection(purpose: "start" | undefined, versions: Versions): string[];
export function whyInstall(root: string, purpose?: "start" | undefined, versions?: Versions): string | undefined;
export function pinnedNode(root: string): string;
export function neededPaths(
  lock: Readonly<Record<string, object>>,
  purpose: "start" | undefined,
  versions: Versions,
): Iterable<string>;
