import { defineConfig } from "vitest/config";
import { plainFields } from "./scripts/plain-fields.ts";

export default defineConfig({
  // What is tested is what the package is made of.
  plugins: [plainFields()],
  test: {
    include: ["test/**/*.test.ts"],
    // No test measures time; the limits only end what hangs, on a machine that does twenty other things.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    // Tests that start and kill processes need a core to themselves beside the one that watches.
    pool: "forks",
    maxWorkers: 2,
  },
});
