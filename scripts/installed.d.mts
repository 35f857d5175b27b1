/** Types of `installed.mjs`, for the tests. */
export function whyInstall(root: string): string | undefined;
export function pinnedNode(root: string): string;
