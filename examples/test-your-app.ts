/** An app under test: no kernel, no disk, no waiting, and it says why things ran. */
import type { Space } from "millrace/signals";
import { testSpace } from "millrace/testing";

function cart(space: Space) {
  const price = space.cell<number>("price", 2);
  const items = space.cell<string[]>("items", []);
  const total = space.computed("total", () => (items.get()?.length ?? 0) * (price.get() ?? 0));
  const mails: string[] = [];
  total.sink((sum) => mails.push(`${sum} to pay`), { debounceMs: 60_000 });
  return { price, items, total, mails };
}

const test = await testSpace({ seed: 7, build: cart });

test.app.items.push("tea", "milk");
await test.settle();
test.expectRan("total").because("items");
console.log("at once:", test.app.mails.join(", "));

await test.advance(60_000);
console.log("a minute later:", test.app.mails.join(", "));

await test.restart();
test.expectNotRan("total");
console.log("after a restart:", test.app.total.get());

try {
  test.expectRan("total").because(test.app.price);
} catch (error) {
  console.log((error as Error).message.split("\n")[0]);
}
test.expectIdempotent();

// prints:
// at once: 0 to pay
// a minute later: 0 to pay, 4 to pay
// after a restart: 4
// expected "total" to have run, and it did not: did not run: its inputs have not changed since its last run.
