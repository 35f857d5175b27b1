/** All planted bugs. Each promise of docs/SPEC.md has at least two. */
import { BUS_MUTANTS } from "./bus-mutants.ts";
import { LOOP_MUTANTS } from "./loop-mutants.ts";
import type { Mutant } from "./mutant.ts";
import { POSTGRES_MUTANTS } from "./postgres-mutants.ts";
import { ROOM_MUTANTS } from "./room-mutants.ts";
import { SCHEDULER_MUTANTS } from "./scheduler-mutants.ts";
import { STORE_MUTANTS } from "./store-mutants.ts";
import { WORK_MUTANTS } from "./work-mutants.ts";

export const MUTANTS: readonly Mutant[] = [
  ...STORE_MUTANTS,
  ...BUS_MUTANTS,
  ...LOOP_MUTANTS,
  ...SCHEDULER_MUTANTS,
  ...WORK_MUTANTS,
  ...ROOM_MUTANTS,
  ...POSTGRES_MUTANTS,
];
