/** The hooks of React in a real browser, with the frames that the page sends. */
import { join } from "node:path";
import { build } from "rolldown";
import { describe, expect, test } from "vitest";
import { serve } from "../http/http-setup.ts";
import { ROOT } from "../repo/program.ts";
import { NO_CHROMIUM, openBrowser } from "./chromium.ts";

async function scriptOf(file: string): Promise<string> {
  const { output } = await build({
    ...{ input: join(import.meta.dirname, file), cwd: ROOT, platform: "browser", write: false, logLevel: "warn" },
    transform: { define: { "process.env.NODE_ENV": '"development"' }, jsx: "react-jsx" },
  });
  return output[0].code;
}

describe.skipIf(NO_CHROMIUM)(`hooks${NO_CHROMIUM === undefined ? "" : ` (${NO_CHROMIUM})`}`, () => {
  test("[W68] [W69] components that ask the same share one live query, which ends after the last of them", async () => {
    const files: Readonly<Record<string, readonly [string, string]>> = {
      "/": ["text/html", '<!doctype html><body><script type="module" src="/page.js"></script>'],
      "/page.js": ["text/javascript", await scriptOf("hooks-page.tsx")],
    };
    const pages = ({ url }: Request) => {
      const [type, text] = files[new URL(url).pathname] ?? [];
      return type === undefined
        ? new Response("", { status: 404 })
        : new Response(text, { headers: { "content-type": type } });
    };
    const { kernel, server, token } = await serve({ pages });
    const page = await (await openBrowser()).newPage();
    page.setDefaultTimeout(590_000);
    const sent: string[] = [];
    page.on("websocket", (socket) =>
      socket.on("framesent", ({ payload }) => sent.push((JSON.parse(String(payload)) as { type: string }).type)),
    );
    const watches = () => sent.filter((type) => type.startsWith("Sys.") && type.endsWith("atch"));
    await page.goto(`${server.url}/#${await token("page", ["read", "send"])}`);
    await page.getByText("sum 0").nth(2).waitFor();
    await kernel.command("Shop.Order", { price: 12 });
    await page.getByText("sum 12").nth(2).waitFor();
    expect(watches()).toEqual(["Sys.Watch"]);
    await page.getByRole("button", { name: "too dear" }).click();
    expect(await page.getByRole("alert").textContent()).toBe("TOO_DEAR");
    const fewer = page.getByRole("button", { name: "fewer" });
    await fewer.click();
    await fewer.click();
    expect(await page.getByText("sum 12").count()).toBe(1);
    expect(watches()).toEqual(["Sys.Watch"]);
    await fewer.click();
    await expect.poll(watches, { timeout: 590_000 }).toEqual(["Sys.Watch", "Sys.Unwatch"]);
  });
});
