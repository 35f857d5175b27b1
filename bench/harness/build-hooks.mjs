/**
 * Loaded into every process and thread of a round (`--import`): imports of the package, and of sources that it does not export, come from the
 * build that `BENCH_BUILD` names. Both builds of a comparison are loaded through it, so that it favours neither.
 */
import { existsSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const build = process.env.BENCH_BUILD;
const ownSources = new URL("../../src/", import.meta.url).href;

if (build !== undefined) {
  const manifest = pathToFileURL(join(build, "package.json")).href;
  const sources = pathToFileURL(join(build, "src", "/")).href;
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier === "millrace" || specifier.startsWith("millrace/")) {
        const from = { ...context, parentURL: manifest };
        try {
          return next(specifier, from);
        } catch (error) {
          // An older build exports from its main entry what has an entry of its own today.
          if (error.code !== "ERR_PACKAGE_PATH_NOT_EXPORTED") throw error;
          return next("millrace", from);
        }
      }
      const resolved = next(specifier, context);
      if (!resolved.url.startsWith(ownSources) || sources === ownSources) return resolved;
      const theirs = new URL(resolved.url.slice(ownSources.length), sources);
      // A source file that the other build does not have is ours.
      return existsSync(theirs) ? { ...resolved, url: theirs.href } : resolved;
    },
  });
}
