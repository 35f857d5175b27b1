/**
 * A task board in the browser: the tasks of the back office, its kernel behind HTTP, and a page that is live.
 *
 *     npm run board
 */
import { createHash, randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { type AppKernel, open } from "millrace";
import { serveHttp } from "millrace/http";
import { build } from "rolldown";
import office from "../back-office/app.ts";

const { FILE: file = ".millrace/board.db", PORT: port = "4647" } = process.env;

const script = await build({
  input: new URL("page.tsx", import.meta.url).pathname,
  platform: "browser",
  // As in a project of its own: `millrace` is the package, not the sources beside it.
  tsconfig: false,
  write: false,
  logLevel: "warn",
  transform: { define: { "process.env.NODE_ENV": '"production"' }, jsx: "react-jsx" },
  output: { minify: true },
});
const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Tasks</title>
<link rel="stylesheet" href="/page.css"><div id="board"></div><script type="module" src="/page.js"></script>
</html>`;
const files = new Map<string, readonly [type: string, text: string]>([
  ["/", ["text/html", html]],
  ["/page.js", ["text/javascript", script.output[0].code]],
  ["/page.css", ["text/css", readFileSync(new URL("page.css", import.meta.url), "utf8")]],
]);

/** Scripts, styles and connections of this server alone. */
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'";

function pages(request: Request): Response {
  const found = files.get(new URL(request.url).pathname);
  if (found === undefined) return new Response("not found\n", { status: 404 });
  const [type, text] = found;
  return new Response(text, { headers: { "content-type": type, "content-security-policy": POLICY } });
}

/** The token of the page, and its scopes. The kernel keeps its digest, this file the token. */
async function tokenOf(kernel: AppKernel<typeof office>): Promise<string> {
  const path = `${file}.token`;
  if (existsSync(path)) return readFileSync(path, "utf8");
  const token = randomBytes(32).toString("base64url");
  const digest = createHash("sha256").update(token).digest("hex");
  await kernel.kernel.command("Kernel.AddToken", { name: "board", scopes: ["read", "send:Tasks.*"], digest });
  writeFileSync(path, token, { mode: 0o600 });
  return token;
}

const kernel = await open(office, { file });
const server = await serveHttp(kernel, { port: Number(port), pages });
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void kernel.close());
console.log(`the board is at ${server.url}/#${await tokenOf(kernel)}`);
