/**
 * Rot: one bit of a synced, live payload changes on the disk. SQLite does not notice (it has no page checksums), so
 * `verify` must.
 *
 * A flip counts if it changes live data: the journal's rows or the documents read differently, or cannot be read. A
 * flip in free space does not count.
 */
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { placeImage } from "./crash-everywhere.ts";
import type { Image } from "./disk-model.ts";
import type { History } from "./history.ts";
import { ImageFacts } from "./image-facts.ts";
import { DATABASE } from "./recording.ts";
import { openStore } from "./store-setting.ts";

export interface FlipTally {
  flips: number;
  /** Flips that changed the data read from the store. */
  struck: number;
  /** Of these, those that `verify` reported. */
  detected: number;
  readonly undetected: string[];
}

/** The data of a store as a digest, and whether `verify` finds it in order. */
interface Telling {
  readonly digest: string;
  readonly ok: boolean;
}

/** `image` is of a store that was closed: all of it is in the database file. */
export async function flipBits(
  image: Image,
  history: History,
  directory: string,
  seed: number,
  flips: Iterable<number>,
): Promise<FlipTally> {
  const random = new SeededRandom(seed);
  const tally: FlipTally = { flips: 0, struck: 0, detected: 0, undetected: [] };
  const healthy = await listen(placeImage(directory, image), history);
  if (!healthy.ok) throw new Error("the recorded store does not verify before any bit is flipped");
  const database = Buffer.from(image.get(DATABASE) ?? Buffer.alloc(0));
  const places = payloadPlaces(database, history);
  for (const flip of flips) {
    tally.flips = flip;
    const place = places[random.below(places.length)] ?? 0;
    const bit = 1 << random.below(8);
    database.writeUInt8(database.readUInt8(place) ^ bit, place);
    const rotten = await listen(placeImage(directory, new Map([...image, [DATABASE, database]])), history);
    database.writeUInt8(database.readUInt8(place) ^ bit, place);
    if (rotten.digest === healthy.digest) continue;
    tally.struck += 1;
    if (!rotten.ok) tally.detected += 1;
    else tally.undetected.push(`byte ${place}, bit ${bit}`);
  }
  return tally;
}

/** Every byte of every published text, effect, receipt and ledger entry in the file. */
function payloadPlaces(database: Buffer, history: History): number[] {
  const texts = [...history.events.values()].map((event) => event.text);
  for (const key of history.ledger.values()) texts.push(...key.begun.values());
  const places: number[] = [];
  for (const text of texts) {
    // The beginning is unique; a text that goes over to another page is found up to there.
    const start = text.slice(0, 40);
    for (let at = database.indexOf(start); at !== -1; at = database.indexOf(start, at + 1)) {
      for (let offset = 0; offset < start.length; offset++) places.push(at + offset);
    }
  }
  return places;
}

async function listen(path: string, history: History): Promise<Telling> {
  const store = await openStore({ path, durability: "power" });
  try {
    const { ok } = await store.verify();
    return { ok, digest: await digestOf(() => ImageFacts.read(store, history)) };
  } finally {
    await store.close();
  }
}

/** A store that cannot be read has a digest of its own. */
async function digestOf(read: () => Promise<ImageFacts>): Promise<string> {
  try {
    return (await read()).digest();
  } catch (error) {
    return `unreadable: ${error instanceof Error ? error.message : String(error)}`;
  }
}
