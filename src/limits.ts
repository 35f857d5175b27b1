/**
 * Every bound of the system, in one place, with the unit last in its name. These are the defaults: a room that lets its
 * owner choose takes the choice as an option and falls back to the constant here. SPEC: H1.
 *
 * It holds numbers only. The check of a bound lives next to the thing it bounds.
 */

// The wire: what one client may cost us.

/** One NDJSON line, newline included (RFC 0024). */
export const LINE_BYTES_MAX = 16_384;
/** Nesting is checked on the bytes before parsing: deeper input parses, then overflows every recursive walk after it. */
export const DEPTH_MAX = 64;
/** Keeps validation of one object linear in something small. */
export const OBJECT_KEYS_MAX = 1_024;
/** A line that was started must end by then, or the peer is holding a buffer open. */
export const LINE_COMPLETE_MS = 10_000;
/** Per connection; at the bound the connection is no longer read from. */
export const REQUESTS_IN_FLIGHT_MAX = 256;
/** Per connection; a client that never reads stops being read, instead of growing our memory. */
export const UNREAD_OUTPUT_BYTES_MAX = 4 * 1_048_576;
/** Times the two bounds above, this is the most memory that all clients together can hold. */
export const CONNECTIONS_MAX = 256;

// Messages and the journal.

/** Names stay usable as an index key in every store. */
export const TOPIC_LENGTH_MAX = 255;
/** One journal row; larger things belong in a file that the message names. */
export const PAYLOAD_BYTES_MAX = 1_048_576;
/** A stored failure keeps this many links of its `cause` chain, which may be cyclic. */
export const ERROR_CAUSE_DEPTH_MAX = 8;

// The loop and the workers.

/** Messages that wait in one mailbox; the next one is refused, not queued. */
export const MAILBOX_MAX = 10_000;
/** Microtasks drained in one turn before timers and sockets are let in. */
export const MICROTASK_DRAIN_MAX = 1_000;
/** Deliveries that one process runs side by side, over different queues. */
export const DISPATCH_CONCURRENCY_MAX = 10;
/** A handler that runs longer is treated as failed and its delivery is retried. */
export const HANDLER_TIMEOUT_MS = 300_000;
/** After this long without renewal a claim counts as abandoned and another process may take it. */
export const LEASE_MS = 30_000;
/** Notifications may be lost, so every worker also looks for work this often. */
export const POLL_INTERVAL_MS = 5_000;

// Timers.

/** 100 years of 365.25 days; a longer delay is a unit mistake. */
export const TIMER_DELAY_MS_MAX = 3_155_760_000_000;
/** The longest delay that runtimes honour: above it `setTimeout` fires at once. Longer timers are re-armed in chunks. */
export const TIMER_CHUNK_MS = 2_147_483_647;

// Chance.

/** What `crypto.getRandomValues` fills at once; nobody needs a larger secret. */
export const RANDOM_BYTES_MAX = 65_536;

// Simulation.

/** Steps of one simulated run before it is called a livelock; a thousand times what a healthy run takes. */
export const SIMULATION_STEPS_MAX = 1_000_000;

// The scheduler.

/** Passes over a settling graph before it yields and backs off. */
export const MAX_ITERS = 10;
/** Runs of one node in one pass; 5 misreads healthy depth as a cycle. */
export const PASS_RUN_BUDGET = 10;
/** First wait of a node that exceeded its budget; it doubles from here. */
export const BACKOFF_START_MS = 250;
/** A cycle that never settles costs at most one run in this time. */
export const BACKOFF_MAX_MS = 2_000;

// Extensions.

/** Restarts of one crashing extension within the window; the next crash leaves it unhealthy until healed. */
export const RESTARTS_MAX = 3;
/** The window in which restarts are counted. */
export const RESTART_WINDOW_MS = 60_000;

// Stores.

/** Older releases have the WAL-reset race: a checkpoint can drop frames that were committed. */
export const SQLITE_VERSION_MIN = "3.51.3";
/** Commits of a space that its change feed and conflict detection reach back to; whoever is further behind reloads. */
export const CHANGES_KEPT_MAX = 10_000;

// Documents and replicas.

/** Values in one document: what one walk over it may cost, and the end of a graph of shared references that unfolds. */
export const DOCUMENT_VALUES_MAX = 5_000_000;
/** From this many children on, replacing a container is stored as the differences: below, the whole is as small. */
export const NARROW_FROM_CHILDREN = 32;
/** Differences that are stored one by one; beyond, the whole value is the smaller patch. */
export const NARROW_OPERATIONS_MAX = 32;
/** Documents a replica keeps in memory; beyond, those that nobody observes are dropped and load again when read. */
export const RESIDENT_DOCUMENTS_MAX = 100_000;
/** Writes per document that a replica remembers for open transactions; one that began earlier has to run again. */
export const RECENT_WRITES_MAX = 1_000;
/** Commits read from the change feed at a time. */
export const FEED_PAGE_COMMITS = 1_000;
