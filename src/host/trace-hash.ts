/**
 * A running 64-bit hash of the steps of a simulated run, to compare two runs of one seed. SPEC: H12.
 *
 * It detects accidental differences and is not cryptographic.
 */

const scratch = new Float64Array(1);
const scratchWords = new Uint32Array(scratch.buffer);

export class TraceHash {
  #left = 0x243f_6a88;
  #right = 0x85a3_08d3;

  number(value: number): void {
    scratch[0] = value;
    this.#word(scratchWords[0]!);
    this.#word(scratchWords[1]!);
  }

  /** The length comes first, so that "a" then "bc" differs from "ab" then "c". */
  text(value: string): void {
    this.#word(value.length);
    for (let index = 0; index < value.length; index++) this.#word(value.charCodeAt(index));
  }

  /** 16 hexadecimal digits. More data may be added afterwards. */
  digest(): string {
    const left = finish(this.#left ^ (this.#right >>> 7));
    const right = finish(this.#right ^ left);
    return left.toString(16).padStart(8, "0") + right.toString(16).padStart(8, "0");
  }

  #word(word: number): void {
    this.#left = Math.imul(rotate(this.#left, 5) ^ word, 0x9e37_79b1);
    this.#right = Math.imul(rotate(this.#right, 13) ^ word ^ this.#left, 0x85eb_ca77);
  }
}

function rotate(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}

/** Spreads every bit over all 32. */
function finish(word: number): number {
  let mixed = Math.imul(word ^ (word >>> 16), 0x7feb_352d);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846c_a68b);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
