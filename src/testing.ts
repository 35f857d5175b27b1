/** `millrace/testing`: a host whose time and chance come from a seed, and a space on it. */
/// <reference lib="esnext.disposable" preserve="true" />
export type { RanExpectation } from "./cells/ran-expectation.ts";
export { type TestedNode, TestSpace, type TestSpaceOptions, testSpace } from "./cells/test-space.ts";
export { type Simulated, simulate } from "./host/simulate.ts";
export { type DriveOptions, type SimulatedHost, simulatedHost } from "./host/simulated-host.ts";
export { type SimulatedProcess, simulatedProcess } from "./host/simulated-process.ts";
