/** The two durabilities of every workload, and their settings in SQLite. */

export type Durability = "power" | "process";

export const DURABILITIES: readonly Durability[] = ["power", "process"];

export const SYNCHRONOUS: Readonly<Record<Durability, "FULL" | "NORMAL">> = { power: "FULL", process: "NORMAL" };
