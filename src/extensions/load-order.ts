/**
 * The order in which extensions are loaded: each after its dependencies, otherwise as they were found. An extension
 * with a missing or circular dependency is left out with the reason, and so are its dependents. Pure. SPEC: X10, X11.
 */

export interface Dependent {
  readonly id: string;
  readonly dependsOn: readonly string[];
  /** Why it cannot be loaded, apart from its dependencies. */
  readonly unusable?: string | undefined;
}

export interface LoadOrder {
  readonly order: readonly string[];
  /** Why the others are not loaded, by id. */
  readonly failures: ReadonlyMap<string, string>;
}

export function loadOrder(extensions: readonly Dependent[]): LoadOrder {
  const byId = new Map(extensions.map((extension) => [extension.id, extension]));
  const order: string[] = [];
  const failures = new Map<string, string>();
  const path: string[] = [];
  const done = new Set<string>();

  /** Why it cannot be loaded. The depth is bounded by the number of extensions. */
  const visit = (id: string): string | undefined => {
    if (done.has(id)) return failures.get(id);
    const { dependsOn, unusable } = byId.get(id)!;
    path.push(id);
    let reason = unusable;
    for (const dependency of dependsOn) reason ??= whyNot(dependency);
    path.pop();
    // A circle was named for all its members while the first of them was visited.
    if (!done.has(id)) settle(id, reason);
    return failures.get(id);
  };

  const whyNot = (dependency: string): string | undefined => {
    if (!byId.has(dependency)) return `depends on ${dependency}, which is not there`;
    const start = path.indexOf(dependency);
    if (start >= 0) {
      const circle = path.slice(start);
      const reason = `depends on itself: ${[...circle, dependency].join(" -> ")}`;
      for (const member of circle) settle(member, reason);
      return reason;
    }
    const reason = visit(dependency);
    return reason === undefined ? undefined : `depends on ${dependency}, which failed: ${reason}`;
  };

  const settle = (id: string, reason: string | undefined): void => {
    done.add(id);
    if (reason === undefined) order.push(id);
    else failures.set(id, reason);
  };

  for (const { id } of extensions) visit(id);
  return { order, failures };
}
