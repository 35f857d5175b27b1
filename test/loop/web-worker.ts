/** The worker of the Web Worker tests: runs in a thread of its own on Deno and Bun. */
import { serve } from "../../src/loop/worker-serve.ts";
import { handlers } from "./worker-handlers.ts";

serve(handlers);
