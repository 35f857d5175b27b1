/**
 * Every bound of the system, in one place, with the unit last in its name. These are the defaults: a room that lets its
 * owner choose takes the choice as an option and falls back to the constant here. SPEC: H1.
 *
 * It holds numbers only. The check of a bound lives next to the thing it bounds.
 */

// The wire: what one client may cost us.

/** One NDJSON line without its newline: a mail with its text fits, a file belongs on the disk. */
export const LINE_BYTES_MAX = 1_048_576;
/** Nesting is checked on the bytes before parsing: deeper input parses, then overflows every recursive walk after it. */
export const DEPTH_MAX = 64;
/** Keeps validation of one object linear in something small. */
export const OBJECT_KEYS_MAX = 1_024;
/** A line that was started must end by then, or the peer is holding a buffer open. */
export const LINE_COMPLETE_MS = 10_000;
/** Per connection; at the bound the connection is no longer read from. */
export const REQUESTS_IN_FLIGHT_MAX = 256;
/** A request or event of more bytes is counted with them while it is in flight; 256 shorter ones are bounded by their number. */
export const LARGE_LINE_BYTES = 16_384;
/** Bytes of large lines in flight, per connection; at the bound the connection is no longer read from. */
export const LARGE_LINES_BYTES_MAX = 1_048_576;
/** Lines of one connection that are taken, routed and answered before more are, when it is the only one that asks: worth a write many times over. */
export const LINES_A_BURST_ALONE = 128;
/** The same when others ask as well, at most: about as much work as the other client's own requests are. */
export const LINES_A_BURST_SHARED = 16;
/** The same at least, beside one that asks less at a time or after a wait. Fewer would cost more in writes than they save in waiting. */
export const LINES_A_BURST_MIN = 4;
/** For so many bursts after another connection's a client counts as not alone. */
export const BURSTS_SHARED_AFTER = 64;
/** Per connection; a client that never reads stops being read, instead of growing our memory. */
export const UNREAD_OUTPUT_BYTES_MAX = 4 * 1_048_576;
/** All connections together: answers under way may go above the bound of a connection, and there are many of them. */
export const UNREAD_OUTPUT_ALL_BYTES_MAX = 256 * 1_048_576;
/** Each may hold a line that has begun, besides its unread output. */
export const CONNECTIONS_MAX = 256;
/** A connection that was idle for so long is ended when another client needs its place. */
export const CONNECTION_IDLE_MS = 60_000;
/** Bytes of a socket's path: what every system has room for, and what Linux has. */
export const SOCKET_PATH_BYTES_MAX = 103;
export const SOCKET_PATH_BYTES_MAX_LINUX = 107;

// Messages and the journal.

/** Names stay usable as an index key in every store. */
export const TOPIC_LENGTH_MAX = 255;
/** The data of one message as JSON, wherever it goes: a journal row, a request, a reply. Larger data belongs in a file that the message names. */
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

/** Messages that wait in one mailbox; the next one is refused, not queued. */
export const MAILBOX_MAX = 10_000;
/** Observations without a cause that a subscriber is given in a second: what he does may be what they follow from. */
export const UNCAUSED_OBSERVATIONS_PER_SECOND_MAX = 10;
/** Microtasks drained in one turn before timers and sockets are let in. */
export const MICROTASK_DRAIN_MAX = 1_000;
/** Deliveries that one process runs side by side for one subscription, unless told otherwise. */
export const DISPATCH_CONCURRENCY_MAX = 10;
/** How often is looked for circles of actors that wait for each other, while an actor that has asked is asked itself. */
export const CIRCLE_LOOK_MS = 1_000;
/** For so long such a circle stands before one of its requests is given up: its handlers may have asked and be busy with something else. */
export const CIRCLE_WAIT_MS = 30_000;
/** A handler that runs longer is treated as failed and its delivery is retried. */
export const HANDLER_TIMEOUT_MS = 300_000;
/** Milliseconds. A younger handler is never stuck, however short its timeout: a slow call of another service takes so long. */
export const STUCK_MS_MIN = 30_000;
/** Handlers of one actor that timed out and still run, from which on the actor is at fault: each holds its memory until it ends. */
export const LEFT_BEHIND_FAULT = 10;
/** Handlers that timed out and still run, which the work board lists: the last ones, about 100 bytes each. */
export const LEFT_BEHIND_LISTED_MAX = 1_000;
/** Handlers in one answer of `Kernel.Work`: about 200 kB. */
export const WORK_TOLD_MAX = 1_000;
/** After this long without renewal a claim counts as abandoned and another process may take it. */
export const LEASE_MS = 30_000;
/** Notifications may be lost, so every worker also looks for work this often. */
export const POLL_INTERVAL_MS = 5_000;

// The bus.

/** Claimed events that one process may hold, settles on their way included; beyond, what is published waits in the journal. */
export const EVENTS_HELD_MAX = 16_384;
/** An event whose process died under it so often is handled only while no other such event is: one of them may be the reason. */
export const EVENT_SUSPECT_DEATHS = 2;
/** An event whose process died under it so often is failed without being handled again. From a suspect on, only after its handling had begun. */
export const EVENT_DEATHS_MAX = 5;
/** Claimed events that may wait here for a handler, while handlers are fast. Reading one back from the journal costs as much as handling it. */
export const EVENTS_WAITING_MAX = 8_192;
/** An event that waits longer than this for a handler could have been another process's: the bound above is halved. */
export const EVENT_WAIT_MS_MAX = 1_000;
/** Handlers of a bus that run at once, of all subscriptions: about 1 KB each. */
export const HANDLERS_RUNNING_MAX = 1_024;
/** Claimed events that stand in the line of one subscription while its handlers are fast: a quarter of all that are held. */
export const SUBSCRIPTION_LINE_MAX = 4_096;
/** Topics whose events are not claimed because a line is full; with more, none is claimed until a line is shorter. */
export const FULL_TOPICS_MAX = 1_000;
/** Events that wait here for an earlier one of their serial key that somebody else holds; the next is given back instead. */
export const EVENTS_PARKED_MAX = 1_024;
/** When an event that was given back so is looked at again. */
export const PARKED_RETRY_MS = 1_000;
/** Unsettled events of other processes that a serial order remembers before it asks which of those are settled that nothing here waits for. */
export const BLOCKERS_UNASKED_MAX = 1_024;
/** Synchronous handlers that run in a row before timers and sockets are let in, if they took this long together. */
export const DISPATCH_BURST_MS = 10;
/** Other processes' writes are looked for at most this often while we are busy: our own writes raise the same signal. */
export const WATCH_PAUSE_MS = 20;
/** How long a handler runs again after rejected commits, where no caller waits for it. */
export const WORK_WINDOW_MS = 30_000;
/** The same where a caller waits: shorter than most callers wait, so that they hear the reason. */
export const AWAITED_WINDOW_MS = 10_000;
/** Ids of handled commands that are remembered in one generation of the filter: 256 KiB, and minutes of heavy traffic. */
export const HANDLED_IDS_MAX = 65_536;
/** How far a client's clock may be ahead for its new ids to be known as new; ids from further ahead are looked up. */
export const ID_AHEAD_MS_MAX = 3_600_000;
/** First and longest wait between two such runs; each wait is drawn at random below it. */
export const STALE_BACKOFF_START_MS = 2;
export const STALE_BACKOFF_MAX_MS = 250;
/** Retries of a delivery, where a subscription asks for them and says no more. */
export const RETRY_BACKOFF_START_MS = 1_000;
export const RETRY_BACKOFF_MAX_MS = 300_000;
/** Between settles that nobody waits for: whatever comes meanwhile goes together. A process that dies before has its events delivered again. */
export const SETTLE_PAUSE_MS = 5;
/** Settles that may wait for another write to go with; more are worth a commit of their own. */
export const SETTLES_WAITING_MAX = 64;
/** Settles that the store could not take now are offered again after this long. */
export const SETTLE_RETRY_MS = 250;
/** How long `stop` waits for running handlers. */
export const STOP_GRACE_MS = 30_000;
/** How long a kernel keeps handled rows of the journal, and receipts: 30 days, unless its options or settings say otherwise. */
export const HISTORY_KEPT_MS = 2_592_000_000;
/** How often retention looks, and how many rows it removes at a time: short enough to hide between two commits. */
export const RETENTION_INTERVAL_MS = 60_000;
export const RETENTION_STEP_ROWS = 500;
/** Rows read at a time by tails, traces and requeues by query. */
export const JOURNAL_PAGE_ROWS = 256;
/** Topics whose type and subscribers are remembered; beyond, they are worked out again. */
export const TOPICS_REMEMBERED_MAX = 10_000;
/** A subscriber's id is part of a receipt's name. */
export const SUBSCRIBER_ID_LENGTH_MAX = 255;
/** Tries of a delivery that a manifest may ask for. More is a mistake in the file: a day of waits is reached with fewer. */
export const RETRY_ATTEMPTS_MAX = 1_000;
/** Declared consumers of a store. Every bus holds a copy of the table and matches each new topic against all of it. */
export const CONSUMERS_MAX = 10_000;

// Receipts with an end.

/** The shortest time for which receipts may be kept: clocks of clients may be off by minutes, and a client repeats what was not answered. */
export const RECEIPTS_KEEP_MS_MIN = 3_600_000;
/** How often those are looked for whose end has come: so often while they are kept, but not more often and not less. Each look is a write. */
export const RECEIPT_SWEEPS_KEPT = 64;
export const RECEIPT_SWEEP_MS_MIN = 60_000;
export const RECEIPT_SWEEP_MS_MAX = 3_600_000;
/** How many go at a time: short enough to hide between two commits. */
export const RECEIPTS_STEP = 500;

// Timers.

/** 100 years of 365.25 days; a longer delay is a unit mistake. */
export const TIMER_DELAY_MS_MAX = 3_155_760_000_000;
/** The longest delay that runtimes honour: above it `setTimeout` fires at once. Longer timers are re-armed in chunks. */
export const TIMER_CHUNK_MS = 2_147_483_647;
/** How long a moment of the wall clock is waited for in one go: the clock may be put forward meanwhile, or the machine sleep. */
export const WALL_CLOCK_LOOK_MS = 60_000;
/** Longer than any schedule that a person has written; it is parsed before anybody has looked at it. */
export const CRON_LENGTH_MAX = 255;

// Chance.

/** What `crypto.getRandomValues` fills at once; nobody needs a larger secret. */
export const RANDOM_BYTES_MAX = 65_536;

// Simulation.

/** Steps of one simulated run before it is called a livelock; a thousand times what a healthy run takes. */
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
/** Runs inside runs: what a read that meets unfinished work may nest before the reader starts over instead. */
export const NESTED_RUNS_MAX = 64;
/** Rejected commits of a node's writes that are repeated without a pause; from there on the pauses grow. */
export const CONFLICTS_BEFORE_BACKOFF = 3;
/** How often a node's writes are offered again to a store that failed or gave no answer. */
export const WRITE_ATTEMPTS_MAX = 5;
/** A pass gives the thread back after this long, so that timers and sockets get in. */
export const PASS_SLICE_MS = 10;
/** Values that one confirmed sink holds until the store has answered; beyond, it skips the oldest. */
export const CONFIRMED_CALLS_MAX = 10_000;

/** Writes of plain code to one document that wait until it is loaded; beyond, `push` and `update` throw. */
export const LATE_WRITES_MAX = 10_000;

/** How long derived values wait for more of them before they go to the store together. */
export const WRITE_BEHIND_MS = 25;
/** Derived values in one commit: about 20 ms of writing, so that others get in between. */
export const WRITE_BEHIND_NODES_MAX = 1_000;
/** The pause before derived values are offered again to a store that failed. */
export const WRITE_BEHIND_RETRY_MS = 1_000;
/** Outputs that are loaded ahead when a run meets one that is not here; it doubles up to this. */
export const PREFETCHED_MAX = 1_024;
/** Between two looks whether a computed value is up to date that a transaction waits for. */
export const READY_PAUSE_MS = 5;
/** Addresses of one document that nobody reads at; beyond, they are forgotten, and made again for whoever comes back. */
export const ADDRESSES_UNREAD_MAX = 1_024;
/** Links followed by one read; a longer chain of links is a circle. */
export const LINK_HOPS_MAX = 32;
/** Streams that were closed, of pieces that have stopped, for which that is remembered; a send to an older one stands aside. */
export const CLOSED_STREAMS_MAX = 10_000;
/** Texts of functions whose fingerprint is remembered; beyond, they are worked out again. */
export const FINGERPRINTS_REMEMBERED_MAX = 10_000;
/** Sends of one space that wait or are on their way to the store; the next one is refused. */
export const SENDS_WAITING_MAX = 100_000;
/** Sends of one space that stand aside because nothing handles their streams; the next one is refused. */
export const SENDS_ASIDE_MAX = 10_000;
/** Handlings of one space whose commit has no answer yet; beyond, the next waits. */
export const SENDS_IN_FLIGHT_MAX = 1_024;
/** Sends dispatched in a row before nodes get to run: observers see their changes together. */
export const SENDS_BURST = 64;
/** Entries kept by one trace. */
export const TRACE_ENTRIES_MAX = 10_000;
/** Commits of nodes of which it is known what they have changed, so that `why` can name their authors. */
export const AUTHORS_MAX = 1_024;

// The loop.

/** The pause before a crashed actor's first restart; it doubles with every crash in the window. */
export const ACTOR_BACKOFF_START_MS = 100;
/** Turns share one macrotask for at most this long, so that timers and sockets get in. */
export const TURNS_SLICE_MS = 5;
/** Messages in one lane; more are refused at the door. */
export const LANE_MAX = 100_000;
/** Commands of the journal that are under way in one loop; the next one is refused. Fewer than a bus holds: each finds room. */
export const COMMANDS_KEPT_MAX = 10_000;
/** Messages and timers of one transaction; a handler that needs more sends a command to itself for the rest. */
export const TX_MESSAGES_MAX = 10_000;
/** How often a loop that keeps its process running asks itself whether it is still alive: a batch ends at most this much later. */
export const HOLD_LOOK_MS = 1_000;
/** How often the journal is asked what became of commands that were kept here and not delivered here. */
export const KEPT_LOOK_MS = 1_000;
/** So many of them are asked for in one look. */
export const KEPT_ASKED_MAX = 100;
/** How long shutdown waits for work under way. */
export const DRAIN_MS = 10_000;
/** However little of a grace is left, what closes has this long for answers that are on their way. */
export const LAST_ANSWERS_MS = 1_000;
/** Turns in one macrotask, however fast they are: actors that only talk to each other must not keep the host out. */
export const TURNS_SLICE_MAX = 256;
/** Handlings of one mailbox in one go, likewise. */
export const MAILBOX_BURST_MAX = 256;
/** Due timers that are taken with one write: the write is short enough to hide between two commits. */
export const TIMERS_FIRED_MAX = 256;
/** Keys of `Memory.*`: each is a document, and `Memory.List` pages through them. */
export const MEMORY_KEYS_MAX = 100_000;
/** Values of `Memory.*` together, each rounded up to the unit below. */
export const MEMORY_BYTES_MAX = 1_073_741_824;
/** Unit in which the values of `Memory.*` are counted: a key that is set again to about the same size changes no count. */
export const MEMORY_UNIT_BYTES = 4_096;
/** Firings of one repeating timer that may wait to be handled; more slots are left out until one is. */
export const TIMER_FIRINGS_MAX = 16;
/** Rows of firings, or of timers, that are read at once: at the start, and after the clock was set back. */
export const TIMERS_REFIRED_MAX = 1_000_000;
/** A kernel renews the row of a firing that it sends; after this long without renewal another kernel sends it. */
export const TIMER_MARK_MS = 5_000;
/** Rows of firings that are renewed or removed with one write. */
export const TIMER_MARKS_STEP = 1_000;
/** The due table is read at most this often because of writes to the store: every message of a busy kernel is one. */
export const TIMER_LOOK_PAUSE_MS = 250;
/** A wall clock that was set back by less than this is not corrected for: clocks are adjusted by milliseconds all the time. */
export const CLOCK_STEP_MS = 1_000;
/** When the due table is read again after the store failed, or when due rows could not be taken. */
export const TIMER_RETRY_MS = 1_000;
/** The longest pause before a timer's message that was refused for the moment is sent again. */
export const TIMER_RETRY_MAX_MS = 60_000;
/** How long the message of a timer waits until the subscribers of `Timer.Fired` were given that: one of them may be busy. */
export const RELAYED_EVENT_HEARD_MS = 1_000;
/** Looks at the journal until a message that was taken back is settled: about a second, and the store is asked again by then. */
export const SETTLED_LOOKS_MAX = 200;
/** Tasks in which a relayed message is looked for before it counts as gone: it stands in a lane meanwhile. */
export const RELAYED_LOOKS_MAX = 100;
/** Timers that wait in memory, where no store keeps them; the next one is refused. */
export const TIMERS_MAX = 100_000;
/** Timers of one client that wait, in sum; the next one is refused. One client must not fill the due table for all others. */
export const TIMERS_PER_CLIENT_MAX = 10_000;
/** Clients with counted timers; beyond, the count of the client that set its last timer longest ago starts anew. */
export const TIMER_CLIENTS_COUNTED_MAX = 10_000;
/** Event streams of one connection. */
export const STREAMS_MAX = 16;
/** Event streams of all connections: what is looked at before each page must stay far below a millisecond. */
export const STREAMS_ALL_MAX = 1_024;
/** Types and topics that one event stream may name. */
export const STREAM_NAMES_MAX = 256;
/** Types and topics of all event streams: a topic that was not met before is matched with every pattern, in one go. */
export const STREAM_NAMES_ALL_MAX = 16_384;
/** Topics and the patterns that match them, remembered for all event streams; beyond, they are matched again. */
export const STREAM_MATCHES_REMEMBERED_MAX = 65_536;
/** Work for all event streams together before timers and sockets get in: about the time of one command. */
export const STREAM_SLICE_MICROS = 500;
/** The same in events that are sent, and in patterns and streams that are looked at: no clock may pass in a simulation. */
export const STREAM_SLICE_EVENTS_MAX = 128;
export const STREAM_LOOKS_MAX = 16_384;
/** Rows of one page for event streams. Pages that take longer than half a slice get shorter, down to the minimum. */
export const STREAM_PAGE_ROWS_MAX = 128;
export const STREAM_PAGE_ROWS_MIN = 4;
/** A client that takes none of its events for this long has stopped reading. */
export const STREAM_STALLED_MS = 30_000;

// Looking into a kernel.

/** Commits whose changes are kept for `millrace trace`, where tracing is on. */
export const COMMITS_TRACED_MAX = 1_000;
/** Handlings that a kernel with `trace` remembers: some minutes of a busy kernel, in about 20 MB. */
export const HANDLINGS_MAX = 65_536;
/** Messages that one `Kernel.Handlings` may ask about, and handlings that it tells of. */
export const HANDLINGS_ASKED_MAX = 500;
export const HANDLINGS_TOLD_MAX = 1_000;
/** Bytes of one value in a trace; a longer one is told by its beginning and its length. */
export const TRACED_VALUE_BYTES_MAX = 4_096;
/** Commits that one `Kernel.Runs` may ask about. */
export const RUNS_ASKED_MAX = 100;
/** Nodes that one `Kernel.Graph` tells of, and reads that it tells of each: an answer is read in one piece. */
export const GRAPH_NODES_MAX = 500;
export const GRAPH_READS_MAX = 50;
/** Rows that one `Kernel.Requeue` or `Kernel.Discard` may name: a request has to fit a line. */
export const REQUEUE_IDS_MAX = 500;
/** Steps of retention that one `Kernel.Purge` takes: each purge leaves one audit row, and must end soon. */
export const PURGE_STEPS_MAX = 20;
/** Characters of the reason and the name that an operator gives: they stand in rows that people read. */
export const OPERATOR_TEXT_LENGTH_MAX = 1_000;

// The client.

/** How long a request waits for its answer unless it says otherwise. */
export const CLIENT_TIMEOUT_MS = 30_000;
/** First and longest pause before a lost connection is tried again: a kernel that restarts is back within a second. */
export const CLIENT_RECONNECT_START_MS = 20;
export const CLIENT_RECONNECT_MS_MAX = 500;
/** Events that wait in a client for whoever iterates; beyond, the connection is not read from. */
export const CLIENT_EVENTS_WAITING_MAX = 1_000;

// Extensions.

/** Restarts of one crashing extension within the window; the next crash leaves it unhealthy until healed. */
export const RESTARTS_MAX = 3;
/** The window in which restarts are counted. */
export const RESTART_WINDOW_MS = 60_000;
/** A manifest or a settings file; a larger one is something else under its name. */
export const MANIFEST_BYTES_MAX = 65_536;
/** Extensions of one kernel; each may hold a timer, a service and a health check. */
export const EXTENSIONS_MAX = 256;
/** An extension that takes longer to initialize, start, stop or tell its health has failed at it. */
export const EXTENSION_STEP_MS = 10_000;
/** How often extensions are asked for their health. */
export const HEALTH_INTERVAL_MS = 30_000;
/** A hook stands between a user and his answer. */
export const HOOK_MS = 5_000;
/** One invocation of the agent, waiting for its turn not included. */
export const AGENT_INVOKE_MS = 120_000;
/** Invocations that wait for the agent; the next one is refused. */
export const AGENT_WAITING_MAX = 1_000;
/** Starts of one slot of a schedule: a task that ends the process with it must not do so for ever. */
export const SLOT_ATTEMPTS_MAX = 3;
/** Schedules of all extensions on a store. */
export const SCHEDULE_ROWS_MAX = 100_000;
/** How long after its slot the row of a schedule that nobody runs is kept where several kernels share the store: 30 days. */
export const SCHEDULE_KEPT_MS = 2_592_000_000;
/** How often the row of a schedule that others change at the same moment is read again. */
export const SLOT_TRIES_MAX = 10;

// Stores.

/** Older releases have the WAL-reset race: a checkpoint can drop frames that were committed. */
export const SQLITE_VERSION_MIN = "3.51.3";
/** How often a store looks whether its files were removed or replaced, also while it is idle. */
export const FILE_LOOK_MS = 250;
/** Commits of a space that its change feed and conflict detection reach back to; whoever is further behind reloads. */
export const CHANGES_KEPT_MAX = 10_000;
/** Commits, over all spaces, that can be sent again and answered as before, or named as an origin. */
export const COMMITS_REMEMBERED_MAX = 1_000_000;

// Documents and replicas.

/** JSON text of one document. Loading and rewriting a document costs time in proportion to it; larger data are many documents. */
export const DOCUMENT_BYTES_MAX = 16 * 1_048_576;
/** Characters of a subject to erase: a shorter word would be found in too many texts. */
export const ERASE_SUBJECT_LENGTH_MIN = 3;
/** Documents that an erasure leaves and names: their values mention the subject. */
export const ERASE_LEFT_MAX = 100;
/** How long an erasure waits for readers of the log before it reports that they are in the way. */
export const ERASE_READERS_MS = 10_000;
/** Characters of one line of an export: the largest document fits, with its labels. */
export const IMPORT_LINE_LENGTH_MAX = 4 * DOCUMENT_BYTES_MAX;
/** Bytes of documents that one job of the store's upkeep reads or writes: some 5 ms, so that other writes go on in between. */
export const SNAPSHOT_SLICE_BYTES = 262_144;
/** Documents in one page of `list`: a page is read in one go. */
export const LIST_DOCUMENTS_MAX = 1_000;
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
/** When the feed is looked at again after it could not be read; twice as long each time in a row, up to the maximum. */
export const FEED_RETRY_MS = 1_000;
export const FEED_RETRY_MAX_MS = 30_000;
/** Documents read anew at a time by a replica that the feed no longer reaches: some milliseconds of work, so that others get in between. */
export const RELOAD_BATCH_DOCUMENTS = 500;
/** When a document that somebody holds is loaded again after that failed; twice as long each time in a row, up to the maximum. */
export const LOAD_RETRY_MS = 1_000;
export const LOAD_RETRY_MAX_MS = 30_000;
