/**
 * Which servers a store may use. SPEC: S285. A failover leaves an old primary behind. It may come back and take writes,
 * which the promoted server never gets. Its timeline is lower, so its connections count as lost.
 */

/** The control file has the timeline of the last checkpoint, which may be before a promotion. */
export const CURRENT_TIMELINE = "('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::bigint";

/** The database system, and how often a standby of it was promoted. */
export interface ServerTimeline {
  readonly system: string;
  readonly timeline: number;
}

/** The greatest timeline that a store object has seen. */
export class ServerChoice {
  #known: ServerTimeline | undefined;

  get isKnown(): boolean {
    return this.#known !== undefined;
  }

  note(server: ServerTimeline | undefined): void {
    if (server !== undefined && !this.isOutdated(server)) this.#known = server;
  }

  /** A promoted standby of the same system has been seen. */
  isOutdated(server: ServerTimeline | undefined): boolean {
    const known = this.#known;
    return server !== undefined && known?.system === server.system && server.timeline < known.timeline;
  }
}
