/**
 * `millrace/testing`: a whole kernel on simulated time, a space on it, and the simulated host below
 * them: the same seed gives the same run.
 */
/// <reference lib="esnext.disposable" preserve="true" />
export type { RanExpectation } from "./cells/ran-expectation.ts";
export { type TestedNode, TestSpace, type TestSpaceOptions, testSpace } from "./cells/test-space.ts";
export {
  type DriveOptions,
  type Simulated,
  type SimulatedHost,
  simulate,
  simulatedHost,
} from "./host/simulated-host.ts";
export { type SimulatedProcess, simulatedProcess } from "./host/simulated-process.ts";
export type { Tested, TestedCapabilities, TestKernel, TestKernelOf, TestKernelOptions } from "./kernel/test-kernel.ts";
export { testKernel } from "./test-kernel.ts";
