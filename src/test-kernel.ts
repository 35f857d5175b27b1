/**
 * `testKernel`: a whole kernel on simulated time, for tests. It needs Node, and is loaded on use, so that
 * `millrace/testing` runs anywhere.
 */
import type { AnyApp } from "./app/caller.ts";
import type { Tested, TestedCapabilities, TestKernel, TestKernelOf, TestKernelOptions } from "./kernel/test-kernel.ts";

/**
 * Opens a kernel on simulated time for an app, several apps, or capabilities: `await using t = await testKernel(shop)`.
 */
export function testKernel<A extends AnyApp>(
  apps: A | readonly A[],
  options?: TestKernelOptions,
): Promise<TestKernelOf<A>>;
export function testKernel(capabilities: TestedCapabilities, options?: TestKernelOptions): Promise<TestKernel>;
export async function testKernel(tested: Tested, options: TestKernelOptions = {}): Promise<unknown> {
  const { openTestKernel } = await import("./kernel/test-kernel.ts");
  return openTestKernel(tested, options);
}
