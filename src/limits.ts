/**
 * Every limit of the system with its unit last in the name. These are the defaults: a room with a configurable limit
 * takes an option and falls back to the constant. SPEC: H1.
 *
 * Only numbers; the checks are beside the limited code.
 */

// The wire: costs of one client.

/** One NDJSON line without its newline: a mail with its text fits, a file belongs on the disk. */
export const LINE_BYTES_MAX = 1_048_576;
/**
 * Nesting is checked on the bytes before parsing: deeper input parses, then overflows every recursive walk after it.
 */
export const DEPTH_MAX = 64;
/** Limits the validation of one object. */
export const OBJECT_KEYS_MAX = 1_024;
/** A started line must end within this time, or the client holds a buffer. */
export const LINE_COMPLETE_MS = 10_000;
/** Per connection; at the limit reading is paused. */
export const REQUESTS_IN_FLIGHT_MAX = 256;
/**
 * A request or event with more bytes is counted by bytes while it is in flight; shorter ones are limited by their
 * number.
 */
export const LARGE_LINE_BYTES = 16_384;
/** Bytes of large lines in flight, per connection; at the limit reading is paused. */
export const LARGE_LINES_BYTES_MAX = 1_048_576;
/** Lines of a single active connection that are answered before more are taken: worth a write many times over. */
export const LINES_A_BURST_ALONE = 128;
/** The same maximum while other connections are active: about as much work as the requests of the other client. */
export const LINES_A_BURST_SHARED = 16;
/**
 * The same minimum, beside a client with smaller bursts or after a wait. Fewer would cost more in writes than they
 * save.
 */
export const LINES_A_BURST_MIN = 4;
/** For this many bursts after another connection's burst a client counts as not alone. */
export const BURSTS_SHARED_AFTER = 64;
/** Per connection; a client that never reads is paused instead of growing our memory. */
export const UNREAD_OUTPUT_BYTES_MAX = 4 * 1_048_576;
/** All connections together: answers in progress may exceed the limit of a connection. */
export const UNREAD_OUTPUT_ALL_BYTES_MAX = 256 * 1_048_576;
/** Each may hold an incomplete line besides its unread output. */
export const CONNECTIONS_MAX = 256;
/** A connection that was idle for this long is ended when another client needs its place. */
export const CONNECTION_IDLE_MS = 60_000;
/** Bytes of a socket's path: the portable limit, and that of Linux. */
export const SOCKET_PATH_BYTES_MAX = 103;
export const SOCKET_PATH_BYTES_MAX_LINUX = 107;

// Messages and the journal.

/** Names stay usable as an index key in every store. */
export const TOPIC_LENGTH_MAX = 255;
/**
 * The data of one message as JSON: a journal row, a request, a reply. Larger data belongs in a file that the message
 * names.
 */
export const PAYLOAD_BYTES_MAX = 1_048_576;
/** A stored failure keeps this many links of its `cause` chain, which may be cyclic. */
export const ERROR_CAUSE_DEPTH_MAX = 8;
/** Characters of the `reason` of a failure: a word for programs. */
export const REASON_LENGTH_MAX = 64;
/** The `data` of a failure as JSON: those of a whole `cause` chain fit one message. */
export const FAILURE_DATA_BYTES_MAX = 65_536;
/** Validation problems in `data.issues` of one answer; `data.more` counts the others. */
export const ISSUES_MAX = 256;

// The loop and the workers.

/** Messages waiting in one mailbox; the next one is refused. */
export const MAILBOX_MAX = 10_000;
/** Observations without a cause per subscriber and second: the subscriber's own actions may cause them. */
export const UNCAUSED_OBSERVATIONS_PER_SECOND_MAX = 10;
/** Microtasks drained in one turn before timers and sockets run. */
export const MICROTASK_DRAIN_MAX = 1_000;
/** Deliveries that one process runs side by side for one subscription, unless told otherwise. */
export const DISPATCH_CONCURRENCY_MAX = 10;
/** Interval of the search for cycles of waiting actors, while an asking actor is asked itself. */
export const CIRCLE_LOOK_MS = 1_000;
/** Age of a cycle before one of its requests times out: its handlers may be busy with other work. */
export const CIRCLE_WAIT_MS = 30_000;
/** A handler that runs longer is treated as failed and its delivery is retried. */
export const HANDLER_TIMEOUT_MS = 300_000;
/** A younger handler is never stuck, even with a shorter timeout: slow calls of other services take this long. */
export const STUCK_MS_MIN = 30_000;
/**
 * Handlers of one actor that timed out and still run, from which on the actor is at fault: each holds its memory
 * until it ends.
 */
export const LEFT_BEHIND_FAULT = 10;
/** Handlers that timed out and still run, which the work board lists: the last ones, about 100 bytes each. */
export const LEFT_BEHIND_LISTED_MAX = 1_000;
/** Handlers in one answer of `Kernel.Work`: about 200 kB. */
export const WORK_TOLD_MAX = 1_000;
/** A Worker whose handler has timed out and that does not react to the abort blocks its thread: it is ended. */
export const WORKER_ABORT_MS = 10_000;
/** After this long without renewal a claim counts as abandoned and another process may take it. */
export const LEASE_MS = 30_000;
/** Notifications may be lost, so every worker also looks for work this often. */
export const POLL_INTERVAL_MS = 5_000;

// The bus.

/** Claimed events per process, including unsettled ones; beyond, published events wait in the journal. */
export const EVENTS_HELD_MAX = 16_384;
/** From this many deaths on an event is a suspect and handled alone among suspects (poison message). */
export const EVENT_SUSPECT_DEATHS = 2;
/**
 * An event with this many deaths fails without another attempt. For a suspect, only deaths after its handling had
 * begun count.
 */
export const EVENT_DEATHS_MAX = 5;
/**
 * Claimed events that may wait for a handler while handlers are fast. Reading one from the journal costs as much as
 * handling.
 */
export const EVENTS_WAITING_MAX = 8_192;
/** If an event waits longer for a handler, another process could take it: the limit above is halved. */
export const EVENT_WAIT_MS_MAX = 1_000;
/** Handlers of a bus that run at once, of all subscriptions: about 1 KB each. */
export const HANDLERS_RUNNING_MAX = 1_024;
/** Claimed events in the line of one subscription while its handlers are fast: a quarter of all held ones. */
export const SUBSCRIPTION_LINE_MAX = 4_096;
/** Topics whose events are not claimed because a line is full; with more, none is claimed until a line is shorter. */
export const FULL_TOPICS_MAX = 1_000;
/** Events that wait here for an earlier one of their ordering key in another process; the next one is released. */
export const EVENTS_PARKED_MAX = 1_024;
/** Delay before such a released event is tried again. */
export const PARKED_RETRY_MS = 1_000;
/** Unsettled events of other processes that a serial order keeps before it asks which unneeded ones are settled. */
export const BLOCKERS_UNASKED_MAX = 1_024;
/** Time that synchronous handlers may take in a row before timers and sockets run. */
export const DISPATCH_BURST_MS = 10;
/** Minimum interval of checks for foreign writes while we are busy: our own writes raise the same signal. */
export const WATCH_PAUSE_MS = 20;
/** How long a handler is rerun after rejected commits, if no caller waits. */
export const WORK_WINDOW_MS = 30_000;
/** The same if a caller waits: shorter than most callers wait, so that they get the reason. */
export const AWAITED_WINDOW_MS = 10_000;
/** Ids of handled commands per generation of the filter: 256 KiB, and minutes of heavy traffic. */
export const HANDLED_IDS_MAX = 65_536;
/** Commands in mailboxes whose receipts were looked up ahead: as many as a mailbox takes. */
export const LOOKS_AHEAD_MAX = MAILBOX_MAX;
/** How far a client's clock may be ahead for its new ids to count as new; ids further ahead are looked up. */
export const ID_AHEAD_MS_MAX = 3_600_000;
/** First and longest wait between two reruns; each wait is random below it. */
export const STALE_BACKOFF_START_MS = 2;
export const STALE_BACKOFF_MAX_MS = 250;
/** Retry delays of a delivery, if a subscription sets none. */
export const RETRY_BACKOFF_START_MS = 1_000;
export const RETRY_BACKOFF_MAX_MS = 300_000;
/**
 * Interval of settlements without a waiter, which are written together. After a crash their events are delivered
 * again.
 */
export const SETTLE_PAUSE_MS = 5;
/** Settlements that may wait for another write; more are worth their own commit. */
export const SETTLES_WAITING_MAX = 64;
/** Delay before settlements are offered again to a busy store. */
export const SETTLE_RETRY_MS = 250;
/** How long `stop` waits for running handlers. */
export const STOP_GRACE_MS = 30_000;
/** How long a kernel keeps handled journal rows and receipts: 30 days, unless configured. */
export const HISTORY_KEPT_MS = 2_592_000_000;
/** Interval of retention, and rows per step: short enough to hide between two commits. */
export const RETENTION_INTERVAL_MS = 60_000;
export const RETENTION_STEP_ROWS = 500;
/** Rows read at a time by tails, traces and requeues by query. */
export const JOURNAL_PAGE_ROWS = 256;
/** Topics whose type and subscribers are cached. */
export const TOPICS_REMEMBERED_MAX = 10_000;
/** A subscriber's id is part of a receipt's name. */
export const SUBSCRIBER_ID_LENGTH_MAX = 255;
/** Attempts of a delivery that a manifest may set. More is a mistake: fewer already take a day. */
export const RETRY_ATTEMPTS_MAX = 1_000;
/**
 * Declared consumers of a store. Every bus holds a copy of the table and matches each new topic against all of it.
 */
export const CONSUMERS_MAX = 10_000;

// Receipts with an end.

/**
 * The shortest retention of receipts: clients' clocks may be off by minutes, and clients repeat unanswered requests.
 */
export const RECEIPTS_KEEP_MS_MIN = 3_600_000;
/** Sweeps per retention time, limited by the minimum and maximum interval. Each sweep is a write. */
export const RECEIPT_SWEEPS_KEPT = 64;
export const RECEIPT_SWEEP_MS_MIN = 60_000;
export const RECEIPT_SWEEP_MS_MAX = 3_600_000;
/** Receipts removed per step: short enough to hide between two commits. */
export const RECEIPTS_STEP = 500;

// Timers.

/** 100 years of 365.25 days; a longer delay is a unit mistake. */
export const TIMER_DELAY_MS_MAX = 3_155_760_000_000;
/**
 * The longest delay that runtimes honour: above it `setTimeout` fires at once. Longer timers are re-armed in chunks.
 */
export const TIMER_CHUNK_MS = 2_147_483_647;
/** Maximum wait for a wall-clock time at once: the clock may be set forward, or the machine may sleep. */
export const WALL_CLOCK_LOOK_MS = 60_000;
/** Longer than any hand-written schedule; it is parsed before any other check. */
export const CRON_LENGTH_MAX = 255;

// Randomness.

/** The limit of one `crypto.getRandomValues` call. */
export const RANDOM_BYTES_MAX = 65_536;

// Simulation.

/** Steps of a simulated run before it counts as a livelock; a thousand times a healthy run. */
export const SIMULATION_STEPS_MAX = 1_000_000;

// The scheduler.

/** Runs of one node in one pass; 5 misreads healthy depth as a cycle. */
export const PASS_RUN_BUDGET = 10;
/** First wait of a node that exceeded its budget; it doubles from here. */
export const BACKOFF_START_MS = 250;
/** A cycle that never settles costs at most one run in this time. */
export const BACKOFF_MAX_MS = 2_000;

/** An effect that takes at least this long counts as slow. */
export const AUTO_DEBOUNCE_FROM_MS = 50;
/** Slow runs after which an effect is debounced by itself. */
export const AUTO_DEBOUNCE_AFTER_RUNS = 3;
/** The debounce a slow effect gets; a person may set another or none. */
export const AUTO_DEBOUNCE_MS = 100;
/** Nested runs for a read that meets unfinished work; beyond, the reader starts again. */
export const NESTED_RUNS_MAX = 64;
/** Rejected commits of a node's writes that are repeated without a pause; then the delays grow. */
export const CONFLICTS_BEFORE_BACKOFF = 3;
/** Attempts to store a node's writes after a failure or without an answer. */
export const WRITE_ATTEMPTS_MAX = 5;
/** A pass yields the thread after this long, so that timers and sockets run. */
export const PASS_SLICE_MS = 10;
/** Values that one confirmed sink holds until the store has answered; beyond, it skips the oldest. */
export const CONFIRMED_CALLS_MAX = 10_000;

/** Writes of plain code to one document that wait until it is loaded; beyond, `push` and `update` throw. */
export const LATE_WRITES_MAX = 10_000;

/** Keys on a page of an index: a page is copied when it is written after a read, and rewritten when it is split. */
export const INDEX_PAGE_MAX = 128;

/** Characters of an index key, which is stored with each element: longer texts would make pages of megabytes. */
export const COLLECTION_KEY_MAX = 400;

/** Elements on one page of a collection: a page is read without a pause. */
export const COLLECTION_PAGE_MAX = 1_000;

/** Counters that make up one total. Processes that share a file use different ones and so do not conflict. */
export const TOTAL_SLOTS = 16;

/** How long derived values wait to be stored together. */
export const WRITE_BEHIND_MS = 25;
/** Derived values in one commit: about 20 ms of writing. */
export const WRITE_BEHIND_NODES_MAX = 1_000;
/** Delay before derived values are offered again to a failed store. */
export const WRITE_BEHIND_RETRY_MS = 1_000;
/** Outputs loaded ahead when a run meets an unloaded one; it doubles up to this. */
export const PREFETCHED_MAX = 1_024;
/** Interval of checks whether a computed value that a transaction waits for is up to date. */
export const READY_PAUSE_MS = 5;
/** Addresses of one document without readers; beyond, they are dropped and created again on demand. */
export const ADDRESSES_UNREAD_MAX = 1_024;
/** Links followed by one read; a longer chain is a cycle. */
export const LINK_HOPS_MAX = 32;
/** Closed streams of stopped pieces that are remembered; a send to an older one waits beside the queue. */
export const CLOSED_STREAMS_MAX = 10_000;
/** Cached fingerprints of function texts. */
export const FINGERPRINTS_REMEMBERED_MAX = 10_000;
/** Waiting or unconfirmed sends of one space; the next one is refused. */
export const SENDS_WAITING_MAX = 100_000;
/** Sends of one space that wait beside the queue for a missing handler; the next one is refused. */
export const SENDS_ASIDE_MAX = 10_000;
/** Unconfirmed handlings of one space; beyond, the next one waits. */
export const SENDS_IN_FLIGHT_MAX = 1_024;
/** Sends dispatched in a row before nodes run: observers see their changes together. */
export const SENDS_BURST = 64;
/** Entries kept by one trace. */
export const TRACE_ENTRIES_MAX = 10_000;
/** Commits of nodes whose changes are kept, so that `why` can name their authors. */
export const AUTHORS_MAX = 1_024;

// The loop.

/** The pause before a crashed actor's first restart; it doubles with every crash in the window. */
export const ACTOR_BACKOFF_START_MS = 100;
/** Turns share one macrotask for at most this long, so that timers and sockets run. */
export const TURNS_SLICE_MS = 5;
/** Messages in one lane; more are refused. */
export const LANE_MAX = 100_000;
/**
 * Journaled commands in progress in one loop; the next one is refused. Fewer than a bus holds, so each finds room.
 */
export const COMMANDS_KEPT_MAX = 10_000;
/** Messages and timers of one transaction; a handler that needs more sends a command to itself. */
export const TX_MESSAGES_MAX = 10_000;

/** Statements of `tx.sql` in one transaction: the store runs them while others wait. */
export const TX_STATEMENTS_MAX = 100;

/** Characters of a statement of `tx.sql` with its values. */
export const SQL_STATEMENT_BYTES_MAX = 1_048_576;
/**
 * Interval in which a loop that keeps its process alive checks its liveness: a batch ends at most this much later.
 */
export const HOLD_LOOK_MS = 1_000;
/** Interval of checks for commands that were journaled here and not delivered here, in case a wake-up was missed. */
export const KEPT_LOOK_MS = 5_000;
/** Pause between two such checks after wake-ups; a slow check is followed by a pause of twice its time. */
export const KEPT_LOOK_PAUSE_MS = 5;
/** Commands per such check. */
export const KEPT_ASKED_MAX = 100;
/** How long shutdown waits for running work. */
export const DRAIN_MS = 10_000;
/** Minimum time for outstanding answers while closing, even if the grace is used up. */
export const LAST_ANSWERS_MS = 1_000;
/** Turns in one macrotask: actors that only talk to each other must not block the host. */
export const TURNS_SLICE_MAX = 256;
/** Handlings of one mailbox in one go, likewise. */
export const MAILBOX_BURST_MAX = 256;
/** Due timers taken with one write: short enough to hide between two commits. */
export const TIMERS_FIRED_MAX = 256;
/** Keys of `Memory.*`: each is a document, and `Memory.List` pages through them. */
export const MEMORY_KEYS_MAX = 100_000;
/** Values of `Memory.*` together, each rounded up to the unit below. */
export const MEMORY_BYTES_MAX = 1_073_741_824;
/**
 * Unit in which the values of `Memory.*` are counted: a key that is set again to about the same size changes no
 * count.
 */
export const MEMORY_UNIT_BYTES = 4_096;
/** Unhandled firings of one repeating timer; further slots are skipped. */
export const TIMER_FIRINGS_MAX = 16;
/** Rows of firings or timers read at once: at the start, and after the clock was set back. */
export const TIMERS_REFIRED_MAX = 1_000_000;
/** A kernel renews the row of a firing that it sends; after this long without renewal another kernel sends it. */
export const TIMER_MARK_MS = 5_000;
/** Rows of firings that are renewed or removed with one write. */
export const TIMER_MARKS_STEP = 1_000;
/** Minimum interval of reads of the due table after writes to the store: every message of a busy kernel is one. */
export const TIMER_LOOK_PAUSE_MS = 250;
/** A wall clock set back by less than this is ignored: clocks are adjusted by milliseconds all the time. */
export const CLOCK_STEP_MS = 1_000;
/** Delay before the due table is read again after a failure. */
export const TIMER_RETRY_MS = 1_000;
/** The longest delay before a temporarily refused timer message is sent again. */
export const TIMER_RETRY_MAX_MS = 60_000;
/** How long a timer's message waits for the delivery of `Timer.Fired`: a subscriber may be busy. */
export const RELAYED_EVENT_HEARD_MS = 1_000;
/** Checks of the journal until a cancelled message is settled: about a second. */
export const SETTLED_LOOKS_MAX = 200;
/** Tasks in which a relayed message is searched before it counts as gone: it may be in a lane meanwhile. */
export const RELAYED_LOOKS_MAX = 100;
/** Timers in memory, without a store; the next one is refused. */
export const TIMERS_MAX = 100_000;
/** Waiting timers of one client; the next one is refused, so that one client cannot fill the due table. */
export const TIMERS_PER_CLIENT_MAX = 10_000;
/** Clients with counted timers; beyond, the count of the least recent client restarts. */
export const TIMER_CLIENTS_COUNTED_MAX = 10_000;
/** Event streams of one connection. */
export const STREAMS_MAX = 16;
/** Event streams of all connections: the checks before each page must stay far below a millisecond. */
export const STREAMS_ALL_MAX = 1_024;
/** Live queries of one connection. */
export const LIVE_QUERIES_MAX = 1_000;
/** Live queries of all connections. */
export const LIVE_QUERIES_ALL_MAX = 65_536;
/** Least time between two answers of a live query: a burst of commits is told once. */
export const LIVE_QUERY_MS = 50;
/** Types and topics that one event stream may name. */
export const STREAM_NAMES_MAX = 256;
/** Types and topics of all event streams: a new topic is matched with every pattern at once. */
export const STREAM_NAMES_ALL_MAX = 16_384;
/** Cached matches of topics and patterns for all event streams. */
export const STREAM_MATCHES_REMEMBERED_MAX = 65_536;
/** Time for all event streams together before timers and sockets run: about one command. */
export const STREAM_SLICE_MICROS = 500;
/** The same in sent events, and in checked patterns and streams: in a simulation no time may pass. */
export const STREAM_SLICE_EVENTS_MAX = 128;
export const STREAM_LOOKS_MAX = 16_384;
/** Rows of one page for event streams. Pages that take longer than half a slice get shorter, down to the minimum. */
export const STREAM_PAGE_ROWS_MAX = 128;
export const STREAM_PAGE_ROWS_MIN = 4;
/** A client that reads none of its events for this long has stopped reading. */
export const STREAM_STALLED_MS = 30_000;

// Looking into a kernel.

/** Commits whose changes are kept for `millrace trace`, with tracing on. */
export const COMMITS_TRACED_MAX = 1_000;
/** Handlings that a kernel with `trace` remembers: some minutes of a busy kernel, in about 20 MB. */
export const HANDLINGS_MAX = 65_536;
/** Messages that one `Kernel.Handlings` may name, and handlings in its answer. */
export const HANDLINGS_ASKED_MAX = 500;
export const HANDLINGS_TOLD_MAX = 1_000;
/** Bytes of one value in a trace; a longer one is shown by its beginning and length. */
export const TRACED_VALUE_BYTES_MAX = 4_096;
/** Commits that one `Kernel.Runs` may name. */
export const RUNS_ASKED_MAX = 100;
/** Nodes in one `Kernel.Graph`, and reads of each: an answer is one line. */
export const GRAPH_NODES_MAX = 500;
export const GRAPH_READS_MAX = 50;
/** Characters and terms of a filter of the journal. */
export const JOURNAL_FILTER_LENGTH_MAX = 2_000;
export const JOURNAL_FILTER_TERMS_MAX = 32;
/** Rows of one answer of `Kernel.Journal`, and bytes of their data: the row that exceeds them is the last. */
export const JOURNAL_ROWS_TOLD_MAX = 500;
export const JOURNAL_ANSWER_BYTES_MAX = 262_144;
/** A view of the kernel that clients watch is asked again after so long. */
export const VIEW_EVERY_MS = 250;
/** Series of handlings by type and handler; further ones are counted as `other`. */
export const METRIC_SERIES_MAX = 500;
/** Failed rows that one `Kernel.Failures` reads, and timers in one answer of `Kernel.Timers`. */
export const FAILURES_GROUPED_MAX = 20_000;
export const TIMERS_TOLD_MAX = 500;
/** One request scans the journal for so long, and says where it stopped. */
export const JOURNAL_SCAN_MS = 100;
/** Rows that one bulk action by filter changes; the caller goes on with its cursor. */
export const BULK_ROWS_MAX = 500;
/** Rows that one `Kernel.Requeue` or `Kernel.Discard` may name: a request must fit a line. */
export const REQUEUE_IDS_MAX = 500;
/** Retention steps of one `Kernel.Purge`: each purge leaves one audit row and must end soon. */
export const PURGE_STEPS_MAX = 20;
/** Characters of an operator's reason and name, which are shown to people. */
export const OPERATOR_TEXT_LENGTH_MAX = 1_000;

// The client.

/** Default timeout of a request. */
export const CLIENT_TIMEOUT_MS = 30_000;
/** First and longest delay before a reconnect: a restarting kernel is back within a second. */
export const CLIENT_RECONNECT_START_MS = 20;
export const CLIENT_RECONNECT_MS_MAX = 500;
/** Unread events in a client; beyond, the connection is paused. */
export const CLIENT_EVENTS_WAITING_MAX = 1_000;

// Extensions.

/** Restarts of one crashing extension within the window; the next crash leaves it unhealthy until healed. */
export const RESTARTS_MAX = 3;
/** The window in which restarts are counted. */
export const RESTART_WINDOW_MS = 60_000;
/** A manifest or a settings file; a larger file is a mistake. */
export const MANIFEST_BYTES_MAX = 65_536;
/** Extensions of one kernel; each may hold a timer, a service and a health check. */
export const EXTENSIONS_MAX = 256;
/** Time limit of an extension's initialize, start, stop and health check. */
export const EXTENSION_STEP_MS = 10_000;
/** How often extensions are asked for their health. */
export const HEALTH_INTERVAL_MS = 30_000;
/** A hook delays the answer to a user. */
export const HOOK_MS = 5_000;
/** One invocation of the agent, without the wait for it. */
export const AGENT_INVOKE_MS = 120_000;
/** Invocations that wait for the agent; the next one is refused. */
export const AGENT_WAITING_MAX = 1_000;
/** Starts of one slot of a schedule: a task that crashes the process must not do so for ever. */
export const SLOT_ATTEMPTS_MAX = 3;
/** Schedules of all extensions on a store. */
export const SCHEDULE_ROWS_MAX = 100_000;
/** How long the row of an unused schedule is kept after its slot if several kernels share the store: 30 days. */
export const SCHEDULE_KEPT_MS = 2_592_000_000;
/** Attempts to read the row of a schedule while others change it. */
export const SLOT_TRIES_MAX = 10;

// Stores.

/** Older releases have the WAL-reset race: a checkpoint can drop frames that were committed. */
export const SQLITE_VERSION_MIN = "3.51.3";
/** Interval of checks whether a store's files were removed or replaced, also while it is idle. */
export const FILE_LOOK_MS = 250;
/** Commits of a space that the change feed and conflict detection reach back to; a replica further behind reloads. */
export const CHANGES_KEPT_MAX = 10_000;
/** Commits over all spaces that are kept for the replay check and as origins. */
export const COMMITS_REMEMBERED_MAX = 1_000_000;

// Documents and replicas.

/**
 * JSON text of one document. Loading and rewriting are proportional to it; larger data belongs in several documents.
 */
export const DOCUMENT_BYTES_MAX = 16 * 1_048_576;
/** Characters of a subject to erase: a shorter word would be found in too many texts. */
export const ERASE_SUBJECT_LENGTH_MIN = 3;
/** Documents that an erasure leaves and names: their values mention the subject. */
export const ERASE_LEFT_MAX = 100;
/** How long an erasure waits for readers of the log before it reports that they are in the way. */
export const ERASE_READERS_MS = 10_000;
/** Characters of one line of an export: the largest document fits, with its labels. */
export const IMPORT_LINE_LENGTH_MAX = 4 * DOCUMENT_BYTES_MAX;
/** Bytes of documents that one upkeep job reads or writes: some 5 ms, so that other writes continue in between. */
export const SNAPSHOT_SLICE_BYTES = 262_144;
/** Documents in one page of `list`, which is read at once. */
export const LIST_DOCUMENTS_MAX = 1_000;
/** Values in one document: limits a walk over it, and ends a graph of shared references that expands. */
export const DOCUMENT_VALUES_MAX = 5_000_000;
/** From this many children on, replacing a container is stored as its differences: below, the whole is as small. */
export const NARROW_FROM_CHILDREN = 32;
/** Differences stored one by one; beyond, the whole value is the smaller patch. */
export const NARROW_OPERATIONS_MAX = 32;
/** Documents of a replica in memory; beyond, unobserved ones are dropped and load again when read. */
export const RESIDENT_DOCUMENTS_MAX = 100_000;
/** Writes per document recorded for open transactions; an older transaction must run again. */
export const RECENT_WRITES_MAX = 1_000;
/** Commits read from the change feed at a time. */
export const FEED_PAGE_COMMITS = 1_000;
/** Delay before the feed is read again after a failure; doubled each time in a row, up to the maximum. */
export const FEED_RETRY_MS = 1_000;
export const FEED_RETRY_MAX_MS = 30_000;
/** Documents per batch of a reload: some milliseconds of work, so that other work runs in between. */
export const RELOAD_BATCH_DOCUMENTS = 500;
/** Delay before a held document is loaded again after a failure; doubled each time in a row, up to the maximum. */
export const LOAD_RETRY_MS = 1_000;
export const LOAD_RETRY_MAX_MS = 30_000;

/** Requests of one principal that wait for their answer over HTTP. */
export const HTTP_REQUESTS_MAX = 256;

/**
 * A request over HTTP is answered after this time at the latest: with its answer, or with the address where it will
 * be.
 */
export const HTTP_WAIT_MS = 30_000;

/** HTTP connections of a server; one more waits until another ends. */
export const HTTP_CONNECTIONS_MAX = 1_024;

/** Streams of a server: event streams, live queries and exchanges of lines. */
export const HTTP_STREAMS_MAX = 1_024;

/** The files of a certificate are looked at after so long. */
export const TLS_LOOK_MS = 60_000;

/** Bytes of the headers of an HTTP request. */
export const HTTP_HEADER_BYTES_MAX = 16_384;

/** The headers of an HTTP request must arrive within this time, its body within the next. */
export const HTTP_HEADERS_MS = 10_000;
export const HTTP_BODY_MS = 30_000;

/** An idle HTTP connection is kept for this time: longer than load balancers keep theirs. */
export const HTTP_IDLE_MS = 65_000;

/** One attempt of a webhook to another service, the number of attempts, and the pauses between them. */
export const WEBHOOK_MS = 15_000;
export const WEBHOOK_ATTEMPTS = 10;
export const WEBHOOK_BACKOFF_START_MS = 5_000;
export const WEBHOOK_BACKOFF_MAX_MS = 86_400_000;

/** Parts of a signature header of an incoming webhook that are read; each signature costs a hash of the body. */
export const WEBHOOK_SIGNATURES_MAX = 8;

/** Events of one CloudEvents batch. */
export const CLOUD_EVENT_BATCH_MAX = 500;

/** Bad tokens of one address in a minute, before its requests are refused. */
export const AUTH_FAILURES_A_MINUTE_MAX = 10;

/** Addresses whose bad tokens are counted; beyond, the count begins again. */
export const AUTH_FAILURE_ADDRESSES_MAX = 10_000;

/** A WebSocket client without a token in its headers sends it within this time. */
export const WEB_SOCKET_TOKEN_MS = 5_000;

/** Pauses of a client behind a URL after failed attempts to connect: the first, and the longest. They double. */
export const WEB_RECONNECT_START_MS = 50;
export const WEB_RECONNECT_MS_MAX = 2_500;
/** After so long without a message a client behind a URL asks whether the kernel is there, and then connects again. */
export const WEB_SILENCE_MS = 15_000;

/** Tokens of a kernel. */
export const TOKENS_MAX = 1_000;
/** Random bits at the end of a lease's number: two histories give the same number once in a million leases. */
export const LEASE_RANDOM_BITS = 20;
/** Lanes of a journal, so that an id is `n * 4096 + lane`, and below 2^53 for 2 * 10^12 appends. */
export const JOURNAL_LANES_MAX = 4_096;
/** Writes that wait for a database server that cannot be reached; the next one is refused. */
export const STORE_PARKED_JOBS_MAX = 100_000;
/** Bytes of these writes. */
export const STORE_PARKED_BYTES_MAX = 67_108_864;
/**
 * Own acknowledged commits of a replica that are looked for after a failover or a restore, to report the lost ones.
 */
export const ACKNOWLEDGED_KEPT_MAX = 1_000;

/** Tools that agents see; with more exposed types, the rest is found and called by general tools. */
export const MCP_TOOLS_MAX = 20;
/** An agent that understands tasks waits so long for an answer before it gets a task. */
export const MCP_TASK_WAIT_MS = 2_000;
/** How often agents ask for the state of a task. */
export const MCP_TASK_POLL_MS = 1_000;

/** A transaction on Postgres whose process stands still is ended after so long: its locks hold up other kernels. */
export const POSTGRES_IDLE_TRANSACTION_MS = 5_000;
