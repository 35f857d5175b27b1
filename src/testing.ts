/** `millrace/testing`: a host whose time and chance come from a seed. */
export { type Simulated, simulate } from "./host/simulate.ts";
export { type DriveOptions, type SimulatedHost, simulatedHost } from "./host/simulated-host.ts";
export { type SimulatedProcess, simulatedProcess } from "./host/simulated-process.ts";
