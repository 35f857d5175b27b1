import fc from "fast-check";
import { describe, expect, test } from "#test";
import { hashBytes, hashText, Sha256, sha256 } from "../../src/message/sha256.ts";

async function webCrypto(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

describe("SHA-256", () => {
  test("[M18] SHA-256 gives the results of FIPS 180-4", () => {
    expect(hashText("")).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect(hashText("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect(hashText("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")).toBe(
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
    );
    expect(hashText("a".repeat(1_000_000))).toBe("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  });

  test("[M18] SHA-256 agrees with WebCrypto at every length around the block borders", async () => {
    for (let length = 0; length <= 260; length++) {
      const bytes = Uint8Array.from({ length }, (_, i) => (i * 167 + length) & 255);
      expect(sha256(bytes)).toEqual(await webCrypto(bytes));
    }
  });

  test("[M18] SHA-256 agrees with WebCrypto on random bytes and texts", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 2_000 }), fc.string({ unit: "grapheme" }), async (bytes, text) => {
        expect(sha256(bytes)).toEqual(await webCrypto(bytes.slice()));
        const expected = await webCrypto(new TextEncoder().encode(text));
        expect(hashText(text)).toBe(Array.from(expected, (byte) => byte.toString(16).padStart(2, "0")).join(""));
      }),
    );
  });

  test("[M19] hashing in pieces gives the hash of the whole", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 150 }), { maxLength: 6 }), (pieces) => {
        const hash = new Sha256();
        for (const piece of pieces) hash.update(piece);
        expect(hash.digestHex()).toBe(hashBytes(Uint8Array.from(pieces.flatMap((piece) => [...piece]))));
      }),
    );
  });

  test("[M19] other hashes do not disturb a hash in progress", () => {
    const hash = new Sha256().updateText("a".repeat(70));
    hashText("something else");
    expect(hash.updateText("b").digest()).toEqual(sha256(new TextEncoder().encode(`${"a".repeat(70)}b`)));
  });

  test("[M19] a finished hash refuses more, and a text with a lone surrogate has no hash", () => {
    const hash = new Sha256();
    hash.digest();
    expect(() => hash.update(new Uint8Array(1))).toThrow("make a new Sha256");
    expect(() => hash.digest()).toThrow("make a new Sha256");
    expect(() => hashText("\ud800")).toThrow("lone surrogate");
  });
});
