import fc from "fast-check";
import { describe, expect, test } from "#test";
import { hashText } from "../../src/message/sha256.ts";

async function webCrypto(text: string): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
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
      const text = Array.from({ length }, (_, i) => String.fromCharCode((i * 167 + length) & 127)).join("");
      expect(hashText(text)).toBe(await webCrypto(text));
    }
  });

  test("[M18] SHA-256 agrees with WebCrypto on random texts", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "grapheme", maxLength: 2_000 }), async (text) => {
        expect(hashText(text)).toBe(await webCrypto(text));
      }),
    );
  });

  test("[M18] SHA-256 agrees with WebCrypto on texts that are longer than the shared buffer", async () => {
    for (const length of [4_095, 4_096, 4_097, 20_000]) {
      const text = "ä".repeat(length);
      expect(hashText(text)).toBe(await webCrypto(text));
    }
  });

  test("[M19] a text with a lone surrogate has no hash", () => {
    expect(() => hashText("\ud800")).toThrow("lone surrogate");
  });
});
