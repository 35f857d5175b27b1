/** A server that takes encrypted connections only. */
import { chmodSync, chownSync, copyFileSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { entry } from "../conformance/requests.ts";
import { freshSchema, NO_LOCAL_POSTGRES, testServer, userClient } from "./server.ts";

const server = testServer({ crashes: true });
const CERTIFICATE = join(import.meta.dirname, "tls", "cert.pem");

/** The server encrypts, and refuses other connections from now on. */
async function encrypt(): Promise<string> {
  const { local } = server;
  if (local === undefined) throw new Error("this test needs a server of its own");
  const { uid, gid } = statSync(local.data);
  for (const [from, to] of [
    ["cert.pem", "server.crt"],
    ["key.pem", "server.key"],
  ] as const) {
    const at = join(local.data, to);
    copyFileSync(join(import.meta.dirname, "tls", from), at);
    chmodSync(at, 0o600);
    chownSync(at, uid, gid);
  }
  await using client = await userClient(server.url);
  await client.query("ALTER SYSTEM SET ssl = on");
  writeFileSync(join(local.data, "pg_hba.conf"), "hostssl all all 127.0.0.1/32 trust\n");
  await client.query("SELECT pg_reload_conf()");
  while ((await client.query("SHOW ssl")).rows[0]?.["ssl"] !== "on");
  return server.url;
}

describe.skipIf(NO_LOCAL_POSTGRES !== undefined)("encrypted connections", () => {
  test("[S287] a store connects by TLS with the certificate that it is given, by option or URL, and by no other", async () => {
    const url = await encrypt();
    const schema = freshSchema();
    const ca = readFileSync(CERTIFICATE);
    {
      await using store = await openPostgresStore({ url, schema, tls: { ca } });
      await store.append([entry()]);
      const held = await openPostgresStore({ url: `${url}?sslmode=verify-full&sslrootcert=${CERTIFICATE}`, schema });
      expect((await held.count()).pending).toBe(1);
      await held.close();
    }
    await expect(openPostgresStore({ url, schema })).rejects.toMatchObject({
      code: "STORE_OPEN_FAILED",
      message: expect.stringMatching(/no encryption/),
    });
    await expect(openPostgresStore({ url, schema, tls: true })).rejects.toMatchObject({
      code: "STORE_OPEN_FAILED",
      message: expect.stringMatching(/self-signed certificate/),
    });
  });
});
