/** The socket as a file: its permissions, and other files at its path. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs, {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { Server } from "node:net";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { UnixSocket } from "../../src/adapters/unix-socket.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { CONNECTION_IDLE_MS } from "../../src/limits.ts";
import { echo, held, ping, type RawClient, scratch, serve, short, steppingHost } from "./socket-setup.ts";

function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8);
}

describe("the socket file", () => {
  test("[N10] [N22] the socket is 0600 in a folder that is created with mode 0700", async () => {
    const path = join(scratch(), "run", "kernel.sock");
    await serve(undefined, { path });
    expect(modeOf(path)).toBe("600");
    expect(modeOf(dirname(path))).toBe("700");
  });

  test("[N10] the socket is 0600 before its mode is set: no other user can connect in between", async () => {
    const path = join(scratch(), "kernel.sock");
    const seen: string[] = [];
    const { chmodSync: real } = fs;
    fs.chmodSync = (file, mode) => {
      if (file === path) seen.push(modeOf(path));
      real(file, mode);
    };
    syncBuiltinESMExports();
    const umask = process.umask(0);
    onTestFinished(() => {
      process.umask(umask);
      fs.chmodSync = real;
      syncBuiltinESMExports();
    });
    await serve(undefined, { path });
    expect(seen).toEqual(["600"]);
    expect(process.umask()).toBe(0);
  });

  for (const mode of [0o755, 0o700, 0o500 | 0o200]) {
    test(`[N22] an existing folder of mode ${mode.toString(8)} is used and not changed`, async () => {
      const path = join(scratch(), "run", "kernel.sock");
      mkdirSync(dirname(path));
      chmodSync(dirname(path), mode);
      await serve(undefined, { path });
      expect(modeOf(dirname(path))).toBe(mode.toString(8));
    });
  }

  for (const mode of [0o777, 0o775, 0o757]) {
    test(`[N22] a folder of mode ${mode.toString(8)}, which others may write to, is refused and not changed`, async () => {
      const path = join(scratch(), "run", "kernel.sock");
      mkdirSync(dirname(path));
      chmodSync(dirname(path), mode);
      await expect(serve(undefined, { path })).rejects.toMatchObject({
        code: "SOCKET_UNSAFE",
        message: expect.stringContaining(`mode ${mode.toString(8)}`),
      });
      expect(modeOf(dirname(path))).toBe(mode.toString(8));
      expect(existsSync(path)).toBe(false);
    });
  }

  test.runIf(process.getuid?.() === 0)("[N22] a folder of another user is refused", async () => {
    const path = join(scratch(), "run", "kernel.sock");
    mkdirSync(dirname(path), { mode: 0o700 });
    chownSync(dirname(path), 12_345, 12_345);
    await expect(serve(undefined, { path })).rejects.toMatchObject({
      code: "SOCKET_UNSAFE",
      message: expect.stringContaining("another user (12345)"),
    });
  });

  test("[N10] the socket is private from the moment it is bound, for any umask of the process", async () => {
    const path = join(scratch(), "run", "kernel.sock");
    // The system binds within `listen`; the mode is read before other code can change it.
    const { listen } = Server.prototype;
    const bound: string[] = [];
    const umask = process.umask(0o000);
    onTestFinished(() => {
      Server.prototype.listen = listen;
      process.umask(umask);
    });
    Server.prototype.listen = function (this: Server, ...args: unknown[]) {
      const server = Reflect.apply(listen, this, args) as Server;
      if (existsSync(path)) bound.push((statSync(path).mode & 0o777).toString(8));
      return server;
    } as typeof listen;
    await serve(undefined, { path });
    expect(bound).toEqual(["600"]);
    expect(process.umask(), "the umask of the process is as it was").toBe(0o000);
  });

  test("[N10] a socket left by a dead process is replaced", async () => {
    const path = join(scratch(), "kernel.sock");
    // Killed, so that it cannot remove its socket.
    const program = `require("node:net").createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, "SIGKILL"))`;
    await once(spawn(process.execPath, ["-e", program]), "exit");
    expect(statSync(path).isSocket()).toBe(true);
    const { connect } = await serve(undefined, { path });
    const client = await connect();
    client.say(ping("q", 1));
    expect((await client.hears(1)).map(short)).toEqual(["reply q 1"]);
  });

  test("[N10] a socket in use is refused and stays in use", async () => {
    const { path, connect, loop } = await serve();
    const second = UnixSocket.open({ host: systemHost(), loop, path });
    await expect(second).rejects.toMatchObject({ code: "SOCKET_IN_USE", message: expect.stringContaining("stop it") });
    const client = await connect();
    client.say(ping("q", 1));
    expect((await client.hears(1)).map(short)).toEqual(["reply q 1"]);
  });

  test("[N10] a symbolic link, even to a socket, and an ordinary file are unchanged", async () => {
    const { path, loop } = await serve();
    const folder = scratch();
    const [link, file] = [join(folder, "link.sock"), join(folder, "file.sock")];
    symlinkSync(path, link);
    writeFileSync(file, "mine");
    for (const strange of [link, file]) {
      const opening = UnixSocket.open({ host: systemHost(), loop, path: strange });
      await expect(opening).rejects.toMatchObject({ code: "SOCKET_NOT_OURS" });
    }
    expect(existsSync(file)).toBe(true);
  });

  test("[N10] a path that cannot be listened on gets a clear error", async () => {
    const { loop } = await serve();
    const path = join(scratch(), "x".repeat(200));
    await expect(UnixSocket.open({ host: systemHost(), loop, path })).rejects.toMatchObject({ code: "SOCKET_FAILED" });
  });

  test("[N11] after a graceful end the file is removed, and another socket may be opened", async () => {
    const { path, socket, loop } = await serve();
    await socket.close();
    expect(existsSync(path)).toBe(false);
    const again = await UnixSocket.open({ host: systemHost(), loop, path });
    await again.close();
  });

  test("[N11] a socket file that another process has replaced is not removed", async () => {
    const { path, socket } = await serve();
    unlinkSync(path);
    const { connect } = await serve(undefined, { path });
    const { ino } = statSync(path);
    await socket.close();
    expect(statSync(path).ino).toBe(ino);
    const client = await connect();
    client.say(ping("q", 1));
    expect((await client.hears(1)).map(short)).toEqual(["reply q 1"]);
    expect(readdirSync(dirname(path))).toEqual(["kernel.sock"]);
  });
});

describe("number of connections", () => {
  test("[N8] one connection too many gets an error and is closed; the others stay", async () => {
    const { connect } = await serve(undefined, { connectionsMax: 2 });
    const [one, two, three] = [await connect(), await connect(), await connect()];
    one.say(ping("p1"));
    two.say(ping("p2"));
    await Promise.all([one.hears(1), two.hears(1)]);
    expect((await three.hears(1)).map(short)).toEqual(["error - 503"]);
    await three.end();
    two.socket.destroy();
    one.say(ping("p3"));
    expect((await one.hears(2)).map(short)).toEqual(["reply p1 null", "reply p3 null"]);
  });

  test("[N21] at the connection limit the longest idle connection makes room", async () => {
    const host = steppingHost();
    const { held: waiting, answer } = held();
    const { connect } = await serve({ waiting, echo }, { host, connectionsMax: 3 });
    const [busy, longest, shorter] = [await connect(), await connect(), await connect()];
    busy.say({ ...ping("b"), type: "Held.Ask" });
    longest.say(ping("l"));
    shorter.say(ping("s"));
    await Promise.all([longest.hears(1), shorter.hears(1)]);
    host.pass(1_000);
    shorter.say(ping("s2"));
    await shorter.hears(2);
    host.pass(CONNECTION_IDLE_MS - 1);
    const taken = await connect();
    taken.say(ping("t"));
    expect((await taken.hears(1)).map(short)).toEqual(["reply t null"]);
    expect((await longest.hears(2)).map(short)).toEqual(["reply l null", "error - 503"]);
    await longest.end();
    // The others are not idle, or not for long enough.
    const refused = await connect();
    expect((await refused.hears(1)).map(short)).toEqual(["error - 503"]);
    await answer("late");
    expect((await busy.hears(1)).map(short)).toEqual(['reply b "late"']);
    shorter.say(ping("s3"));
    expect((await shorter.hears(3)).map(short).at(-1)).toBe("reply s3 null");
  });

  test("[N8] a thousand connections at once each get their own answers", async () => {
    const { connect, loop } = await serve(undefined, { connectionsMax: 1_000 });
    const clients: RawClient[] = [];
    // A few at a time: the system queues only so many before they are accepted.
    while (clients.length < 1_000) {
      const more = await Promise.all(Array.from({ length: 50 }, () => connect()));
      for (const client of more) client.say(ping(`first${clients.push(client)}`));
      await Promise.all(more.map((client) => client.hears(1)));
    }
    clients.forEach((client, n) => {
      client.say(ping(`q${n}`, n));
    });
    const answers = await Promise.all(clients.map((client) => client.hears(2)));
    expect(answers.map(([, answer]) => answer?.data)).toEqual(clients.map((_, n) => n));
    expect(loop.pending.size).toBe(0);
  });
});
