import { describeStore } from "./conformance/describe-store.ts";
import { openMemory } from "./open-memory.ts";

describeStore("memory store", openMemory(), { modelRuns: 300 });
