/** The options of handlers at every entry point, on the store in memory. */
import { describeOptions } from "./describe-options.ts";
import { OPTION_ENTRIES } from "./option-entries.ts";
import { memoryWorlds } from "./world.ts";

for (const point of OPTION_ENTRIES) describeOptions(point, "memory", memoryWorlds);
