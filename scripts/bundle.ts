/**
 * The package's JavaScript: one file for each entry of `exports` and for the command, and chunks for shared modules.
 * Node loads these six times as fast as three hundred modules, which take most of the time of a verb. `tsc` makes the
 * types (tsconfig.build.json). The package ships no sources, so its maps contain them.
 *
 *     node scripts/bundle.ts [folder]
 */
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";
import manifest from "../package.json" with { type: "json" };
import { plainFields } from "./plain-fields.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [folder = "dist"] = process.argv.slice(2);

const targets = Object.values(manifest.exports).flatMap((target) =>
  typeof target === "string" ? [] : [target.default, ...("browser" in target ? [target.browser] : [])],
);
const entries = [...targets, "./dist/cli/main.js"].map((target) => target.slice("./dist/".length, -".js".length));

const packages = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.peerDependencies)];

await build({
  cwd: root,
  input: Object.fromEntries(entries.map((entry) => [entry, `src/${entry}.ts`])),
  platform: "node",
  plugins: [plainFields()],
  // With their subpaths: a second copy of a part of them would not know the objects of the first.
  external: [/^node:/, ...packages.map((name) => new RegExp(`^${name}(?:/|$)`))],
  // Without `using` and other new syntax: browsers and bundlers load the core too.
  transform: { target: "node22.18" },
  logLevel: "warn",
  // A report of slow plugins is no news for a user of `npm start`.
  checks: { pluginTimings: false },
  output: {
    dir: folder,
    format: "esm",
    entryFileNames: "[name].js",
    // One folder below `dist`, as rooms are: `kernel/faults.ts` and `cli/version.ts` find the package from there.
    chunkFileNames: "chunks/[name].js",
    sourcemap: true,
  },
});
