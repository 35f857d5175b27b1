/** Output that clients do not read, bounded for all of them together. */
import { describe, expect, test } from "vitest";
import { type OutputHolder, UnreadOutput } from "../../src/adapters/unread-output.ts";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { ping, serve, short } from "./socket-setup.ts";

class Holder implements OutputHolder {
  frames = 0;
  dropped: string | undefined;
  drop(reason: string): void {
    this.dropped = reason;
    this.frames = 0;
  }
}

describe("unread output in sum", () => {
  test("[N20] the connection with the most unread output is dropped, with the bytes; the others stay", () => {
    const output = new UnreadOutput(1_000);
    const [small, large, middle] = [new Holder(), new Holder(), new Holder()];
    const write = (holder: Holder, bytes: number) => {
      holder.frames += bytes;
      output.note(holder);
    };
    write(small, 100);
    write(large, 600);
    write(middle, 300);
    expect(large.dropped).toBeUndefined();
    write(small, 1);
    expect([small, large, middle].map(({ dropped }) => dropped !== undefined)).toEqual([false, true, false]);
    expect(large.dropped).toContain("600 bytes");
    expect(large.dropped).toContain("1000 bytes");
  });

  test("[N20] output that a socket has sent meanwhile does not count", () => {
    const output = new UnreadOutput(1_000);
    const [reader, other] = [new Holder(), new Holder()];
    for (let n = 0; n < 100; n++) {
      reader.frames = 900;
      output.note(reader);
      // Read, without an answer.
      reader.frames = 0;
      other.frames = 200;
      output.note(other);
      other.frames = 0;
    }
    expect([reader.dropped, other.dropped]).toEqual([undefined, undefined]);
  });

  test("[N20] in random histories the sum never exceeds the limit, and connections are dropped only above it", () => {
    for (let seed = 1; seed <= 50; seed++) {
      const random = new SeededRandom(seed);
      const below = (n: number) => random.uint32() % n;
      const output = new UnreadOutput(10_000);
      let holders = Array.from({ length: 8 }, () => new Holder());
      for (let step = 0; step < 500; step++) {
        const holder = holders[below(holders.length)] as Holder;
        const before = holders.reduce((sum, { frames }) => sum + frames, 0);
        const bytes = below(4_000);
        const isReading = below(3) === 0;
        holder.frames = isReading ? below(holder.frames + 1) : holder.frames + bytes;
        if (!isReading || below(2) === 0) output.note(holder);
        const dropped = holders.filter((one) => one.dropped !== undefined);
        const sum = holders.reduce((total, { frames }) => total + frames, 0);
        expect(sum, `seed ${seed}`).toBeLessThanOrEqual(10_000);
        if (dropped.length > 0) expect(before + bytes, `seed ${seed}`).toBeGreaterThan(10_000);
        holders = holders.map((one) => (one.dropped === undefined ? one : new Holder()));
      }
    }
  });

  test("[N2] [N20] clients that never read are dropped and reported; a client that reads is answered", async () => {
    const bytesMax = 2 * 1_048_576;
    const { connect, seen, observed, socket } = await serve(undefined, { unreadOutputAllBytesMax: bytesMax });
    const reader = await connect();
    const deaf = await Promise.all(Array.from({ length: 4 }, () => connect({ reading: false })));
    const payload = "y".repeat(8_000);
    deaf.forEach((client, n) => {
      for (let m = 0; m < 200; m++) client.say(ping(`d${n}-${m}`, payload));
    });
    await seen("Sys.Overload");
    expect(socket.frames).toBeLessThanOrEqual(bytesMax);
    const { data } = observed.find(({ type }) => type === "Sys.Overload") ?? {};
    expect(data).toMatchObject({ adapter: "socket", code: 503, reason: expect.stringContaining("has not read") });
    reader.say(ping("r", 1));
    expect((await reader.hears(1)).map(short)).toEqual(["reply r 1"]);
  });
});
