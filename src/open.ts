/**
 * `open`: runs apps on a kernel. The kernel needs Node; it is loaded when `open` is called, so that `millrace` runs
 * anywhere.
 */
import type { App } from "./app/app.ts";
import type { AnyApp } from "./app/caller.ts";
import type { AppKernel } from "./kernel/app-kernel.ts";
import type { OpenOptions } from "./kernel/open-app.ts";

/** Opens a kernel for one app, or for several that share it: `open(shop, { file: "shop.db" })`. */
export async function open<A extends AnyApp>(app: A | readonly A[], options: OpenOptions = {}): Promise<AppKernel<A>> {
  const { openApp } = await import("./kernel/open-app.ts");
  const opened: unknown = await openApp(app as App | readonly App[], options);
  return opened as AppKernel<A>;
}
