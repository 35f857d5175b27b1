/** A headless Chromium of the machine, for tests of pages. */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";
import { onTestFinished } from "vitest";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const found = [process.env["CHROMIUM"] ?? "", ...PLACES].find((path) => path !== "" && existsSync(path));

/** Why there is no browser; undefined if there is one. */
export const NO_CHROMIUM =
  found === undefined ? "no Chromium: install Debian's chromium, or give its path in CHROMIUM" : undefined;

if (NO_CHROMIUM !== undefined && process.env["CHROMIUM_REQUIRED"] === "1") throw new Error(NO_CHROMIUM);

/** Without its calls home: on a closed network they are refused, many at a time. */
const ARGS = [
  ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"],
];

/** Ends with the test. */
export async function openBrowser(): Promise<Browser> {
  const browser = await chromium.launch({ executablePath: found as string, args: ARGS, timeout: 300_000 });
  onTestFinished(() => browser.close());
  return browser;
}
