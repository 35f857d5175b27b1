/** The two durabilities that every workload runs at, and what each is in SQLite. */

export type Durability = "power" | "process";

export const DURABILITIES: readonly Durability[] = ["power", "process"];

export const SYNCHRONOUS: Readonly<Record<Durability, "FULL" | "NORMAL">> = { power: "FULL", process: "NORMAL" };
