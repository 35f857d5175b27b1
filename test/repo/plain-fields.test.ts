/** The form in which the package runs some of its sources; all other tests show that its behaviour is the same. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { withPlainFields } from "../../scripts/plain-fields.ts";
import { Registry } from "../../src/scheduler/registry.ts";
import { ROOT } from "./program.ts";

const lines = (text: string): number => text.split("\n").length;

describe("fields made plain", () => {
  test("[K61] carry the names of their classes; those that the constructor sets are not declared before", () => {
    const source = [
      "class Above { #size = 1; get size() { return this.#size; } }",
      "class Below extends Above {",
      "  readonly #size: number;",
      "  name: string;",
      "  error: unknown;",
      "  #later: (",
      "    () => void",
      "  ) | undefined;",
      "  constructor(name: string) { super(); this.#size = 2; this.name = name; if (name) this.error = 1; }",
      "  get both() { return [this.size, this.#size, other(this)?.#size]; }",
      "}",
    ].join("\n");
    expect(withPlainFields(source).split("\n")).toEqual([
      "class Above { $Above_size = 1; get size() { return this.$Above_size; } }",
      "class Below extends Above {",
      "  ",
      "  ",
      "  error: unknown;",
      "  $Below_later: (",
      "    () => void",
      "  ) | undefined;",
      "  constructor(name: string) { super(); this.$Below_size = 2; this.name = name; if (name) this.error = 1; }",
      "  get both() { return [this.size, this.$Below_size, other(this)?.$Below_size]; }",
      "}",
    ]);
  });

  test("[K61] classes inside classes, static ones and classes without a name are told apart; text is left alone", () => {
    const source = `class A { static #n = "#n"; m() { return class { #k = A.#n; o() { return this.#k + " #k"; } }; } }`;
    expect(withPlainFields(source)).toBe(
      `class A { static $A_n = "#n"; m() { return class { $class1_k = A.$A_n; o() { return this.$class1_k + " #k"; } }; } }`,
    );
  });

  test("[K61] code without a plain form is refused", () => {
    expect(() => withPlainFields("class A { #n = 1; is(a: object) { return #n in a; } }")).toThrow(
      "#n in a has no plain form",
    );
  });

  test("[K61] no private name is left in the rooms that are made plain, and every line is where it was", () => {
    const rooms = ["cells", "loop", "scheduler"].map((room) => join(ROOT, "src", room));
    for (const file of rooms.flatMap((room) => readdirSync(room).map((name) => join(room, name)))) {
      const source = readFileSync(file, "utf8");
      const plain = withPlainFields(source);
      expect([file, plain.match(/this\.#\w+/)]).toEqual([file, null]);
      expect([file, lines(plain)]).toEqual([file, lines(source)]);
    }
  });

  test("[K61] these tests run them", () => {
    expect(Object.keys(new Registry())).toContain("$Registry_nodes");
  });
});
