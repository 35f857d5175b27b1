/**
 * Counts answered requests by route and status, for `/metrics`. Routes are the patterns of this server, so that the
 * counts are bounded. SPEC: W89.
 */
export class RequestCounts {
  readonly all = new Map<string, { readonly route: string; readonly status: number; count: number }>();

  add(route: string, status: number): void {
    const key = `${status} ${route}`;
    const found = this.all.get(key);
    if (found === undefined) this.all.set(key, { route, status, count: 1 });
    else found.count++;
  }
}
