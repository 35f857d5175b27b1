/**
 * The rooms of the system and which of them stand today, so that the command can say so. Goes when all of them do.
 */
export interface Room {
  readonly name: string;
  readonly does: string;
  readonly built: boolean;
}

export const ROOMS: readonly Room[] = [
  { name: "message", does: "the envelope of everything that is sent and stored", built: true },
  { name: "host", does: "time, chance and tasks, real and simulated", built: true },
  { name: "store", does: "documents, transactions, journal, due table", built: true },
  { name: "bus", does: "publish and subscribe over the journal", built: true },
  { name: "scheduler", does: "recomputes what is derived and observed", built: false },
  { name: "cells", does: "state as its users touch it", built: false },
  { name: "loop", does: "lanes, routing, actors, timers", built: false },
  { name: "extensions", does: "folders with a manifest", built: false },
  { name: "adapters", does: "socket and stdio", built: false },
  { name: "kernel", does: "boot, shutdown, the daemon", built: false },
];
