/** Every entry point on the store in memory. */
import { describeOnce } from "./describe-once.ts";
import { ENTRY_POINTS } from "./entry-points.ts";
import { memoryWorlds } from "./world.ts";

for (const entryPoint of ENTRY_POINTS) describeOnce(entryPoint, "memory", memoryWorlds);
