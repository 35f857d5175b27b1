/** Certificates that change while the server runs, and bodies that take long. */
import { writeFileSync } from "node:fs";
import { request } from "node:https";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Host } from "../../src/host/host.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { HTTP_BODY_MS, TLS_LOOK_MS } from "../../src/limits.ts";
import { scratchFolder } from "../repo/program.ts";
import { NEW, OLD } from "./certificates.ts";
import { addToken, serve } from "./http-setup.ts";

/** The host of the system, where the test fires the timers of one length. */
function heldTimers(heldMs: number) {
  const due: (() => void)[] = [];
  const reported: unknown[] = [];
  const system = systemHost();
  const timer: Host["timer"] = (ms, task, options) => {
    if (ms !== heldMs) return system.timer(ms, task, options);
    due.push(task);
    return { cancel: () => void (due.includes(task) && due.splice(due.indexOf(task), 1)) } as never;
  };
  const report: Host["report"] = (error) => void reported.push(error);
  const host = new Proxy(system, {
    get: (from, name) => {
      if (name === "timer" || name === "report") return name === "timer" ? timer : report;
      const value: unknown = Reflect.get(from, name, from);
      return typeof value === "function" ? value.bind(from) : value;
    },
  });
  const fire = () => {
    for (const task of due.splice(0)) task();
  };
  return { host, due, fire, reported };
}

/** The name in the certificate of the server. */
function certified(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/livez`, { rejectUnauthorized: false, agent: false }, (response) => {
      const { subject } = (response.socket as import("node:tls").TLSSocket).getPeerCertificate();
      response.resume().once("end", () => resolve(String(subject.CN)));
    });
    sent.on("error", reject).end();
  });
}

function certificateFiles() {
  const folder = scratchFolder();
  const [certFile, keyFile] = [join(folder, "server.crt"), join(folder, "server.key")];
  const write = ({ cert, key }: { cert: string; key: string }) => {
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key);
  };
  write(OLD);
  return { certFile, keyFile, write };
}

test("[W92] a renewed certificate is taken at reloadTls, and a key of another one is refused", async () => {
  const { write, ...tls } = certificateFiles();
  const { server } = await serve({ tls });
  expect(await certified(server.url)).toBe("old.example");
  write({ cert: OLD.cert, key: NEW.key });
  expect(() => server.reloadTls()).toThrow();
  expect(await certified(server.url)).toBe("old.example");
  write(NEW);
  server.reloadTls();
  expect(await certified(server.url)).toBe("new.example");
});

test("[W92] a renewed certificate is found by the next look at its files; bad files are reported", async () => {
  const { write, ...tls } = certificateFiles();
  const { host, fire, reported } = heldTimers(TLS_LOOK_MS);
  const { server } = await serve({ tls, host });
  write({ cert: "nothing", key: "nothing" });
  fire();
  expect(reported).toHaveLength(1);
  expect(await certified(server.url)).toBe("old.example");
  write(NEW);
  fire();
  expect(await certified(server.url)).toBe("new.example");
});

/** Begins a request, and sends only a part of its body. */
async function begun(url: string, path: string, headers: readonly string[], body: string) {
  const { port } = new URL(url);
  const socket = connect(Number(port), "127.0.0.1").setEncoding("utf8");
  onTestFinished(() => void socket.destroy());
  let heard = "";
  const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket
    .on("error", () => undefined)
    .on("data", (text) => {
      heard += text;
    });
  socket.write(
    [`POST ${path} HTTP/1.1`, "host: localhost", ...headers, "content-type: application/json", "", body].join("\r\n"),
  );
  return { socket, ended, heard: () => heard };
}

test("[W93] a body that comes too slowly is 408, and an exchange of lines goes on", async () => {
  const { host, due, fire } = heldTimers(HTTP_BODY_MS);
  const { server, kernel } = await serve({ host });
  const authorization = `authorization: Bearer ${await addToken(kernel, "slow", ["read", "send"])}`;
  const until = async (isSo: () => boolean) => {
    while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
  };
  const line = (id: string) => {
    const text = `${JSON.stringify({ kind: "query", type: "Shop.Sum", data: null, metadata: { id, timestamp: 1 } })}\n`;
    return `${text.length.toString(16)}\r\n${text}\r\n`;
  };
  const lines = await begun(server.url, "/v1/messages", [authorization, "transfer-encoding: chunked"], line("m1"));
  await until(() => lines.heard().includes('"m1"'));
  // The exchange of lines has no timer for its body.
  expect(due).toHaveLength(0);
  const slow = await begun(server.url, "/v1/commands/Shop.Order", [authorization, "content-length: 12"], '{"pri');
  await until(() => due.length === 1);
  fire();
  await slow.ended;
  expect(slow.heard()).toMatch(/^HTTP\/1\.1 408 /);
  lines.socket.write(line("m2"));
  await until(() => lines.heard().includes('"m2"'));
});
