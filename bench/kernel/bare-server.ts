/**
 * The limit of `bench/kernel`: the minimum for a durable command through a socket, with hand-written statements on the
 * tables of our own store. It parses each line, writes the rows of the command, an event and a receipt, one row of
 * changes per batch, and prints the answers after COMMIT. It does not check, hash, route or remember. Prints `ready`
 * when it listens; ends with its input.
 */
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openSqliteStore } from "millrace/sqlite";

const [, directory = ""] = process.argv.slice(2);
/** As long as a real one. */
const HASH = "mRbYh1Bq3Zk0Vt8Wc5Xn7Lp2Ds9Fg4Ja6Ke_Ti-UoQw";
const JOURNAL_COLUMNS =
  "id, topic, source, payload, status, created_at, processed_at, message_id, kind, type, causation_id, timestamp, hash";

interface Command {
  readonly type: string;
  readonly data: unknown;
  readonly metadata: { readonly id: string; readonly timestamp: number };
}

interface Waiting {
  readonly client: Socket;
  readonly command: Command;
}

const database = await openDatabase();
const sql = {
  begin: database.prepare("BEGIN IMMEDIATE"),
  commit: database.prepare("COMMIT"),
  checkpoint: database.prepare("PRAGMA wal_checkpoint(PASSIVE)"),
  journal: database.prepare(
    `INSERT INTO event_journal (${JOURNAL_COLUMNS}) VALUES (?, ?, 'bare', ?, 'done', ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (message_id) DO NOTHING`,
  ),
  receipt: database.prepare(
    "INSERT INTO document (id, space, scope, name, sequence, patch_bytes, base_sequence, base_bytes, snapshot_sequence, base, base_sum) " +
      "VALUES (?, 1, 'shared', ?, ?, 0, ?, ?, 0, ?, 0) ON CONFLICT (space, scope, name) DO NOTHING",
  ),
  change: database.prepare("INSERT INTO change (space, first, last, needed, commits, sum) VALUES (1, ?, ?, 1, ?, 0)"),
};

let waiting: Waiting[] = [];
let journalId = 0;
let sequence = 0;
let batches = 0;

function write(batch: readonly Waiting[]): void {
  const first = sequence + 1;
  const changes: string[] = [];
  sql.begin.run();
  for (const { command } of batch) changes.push(writeOne(command));
  sql.change.run(first, sequence, changes.join("\n"));
  sql.commit.run();
  // As often as ours: its log has a thousand pages by then.
  if (++batches % 15 === 0) sql.checkpoint.get();
}

/** Writes the rows of one command; the change is text. */
function writeOne({ type, data, metadata: { id, timestamp } }: Command): string {
  const now = Date.now() / 1_000;
  sequence++;
  const payload = JSON.stringify(data);
  const receipt = JSON.stringify([{ op: "set", path: [], value: { request: HASH, result: { success: true } } }]);
  const { journal } = sql;
  journal.run(++journalId, type, payload, now, now, id, "command", type, null, timestamp, HASH);
  const event = JSON.stringify({ index: sequence });
  journal.run(++journalId, "Bare.Changed", event, now, now, `${id}.event`, "event", "Bare.Changed", id, null, HASH);
  sql.receipt.run(sequence, `receipt/${id}`, sequence, sequence, receipt.length, receipt);
  return `${sequence} ${receipt} ${payload}`;
}

function flush(): void {
  const batch = waiting;
  waiting = [];
  write(batch);
  const answers = new Map<Socket, string>();
  for (const { client, command } of batch) {
    answers.set(client, `${answers.get(client) ?? ""}${JSON.stringify(answer(command))}\n`);
  }
  for (const [client, text] of answers) client.write(text);
}

function answer({ type, metadata: { id, timestamp } }: Command): object {
  return { kind: "reply", type, data: { success: true }, metadata: { id: `${id}.reply`, timestamp, causation: id } };
}

/** On the tables of our own store, which makes them. */
async function openDatabase(): Promise<DatabaseSync> {
  const path = join(directory, "bare.db");
  await (await openSqliteStore({ path })).close();
  const opened = new DatabaseSync(path);
  for (const pragma of ["journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 0", "cache_size = -16384"]) {
    opened.exec(`PRAGMA ${pragma}`);
  }
  return opened;
}

const server = createServer((client) => {
  let rest = "";
  client.setEncoding("utf8");
  client.on("error", () => client.destroy());
  client.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    if (waiting.length === 0 && lines.length > 0) setImmediate(flush);
    for (const line of lines) waiting.push({ client, command: JSON.parse(line) });
  });
});
await new Promise<void>((resolve) => server.listen(join(directory, "bench.sock"), resolve));
console.log("ready");
process.stdin.on("end", () => process.exit(0)).resume();
