/** The fields of a manifest, and the texts for its mistakes. */
import { describe, expect, test } from "vitest";
import { readManifest } from "../../src/extensions/manifest.ts";
import { fileProblemText } from "../../src/extensions/yaml-file.ts";

/** The problems as a person sees them. */
function problems(text: string): string[] {
  const result = readManifest(text);
  return result.kind === "valid" ? [] : result.problems.map(fileProblemText);
}

function manifest(text: string) {
  const result = readManifest(text);
  if (result.kind === "invalid") throw new Error(result.problems.map(fileProblemText).join("\n"));
  return result.manifest;
}

const BASE = "id: inbox\nentrypoint: main.ts\n";

describe("a manifest", () => {
  test("[X1] all fields of a manifest are read", () => {
    const text = `
id: inbox
name: The inbox
version: "2.1.0"
description: mail that came in
entrypoint: src/main.ts:Inbox
depends_on: [clock, store-room]
enabled: false
config:
  folder: new
  limits: { mails: 10, ratio: 0.5, on: true, none: null, list: [1, two] }
events:
  publishes:
    - topic: email.received
      description: a mail came in
    - topic: tick
  subscribes:
    - topic: user.notify
      handler: notify_user
    - topic: email.*
schedules:
  - { name: look, cron: "*/5 * * * *", timezone: Europe/Berlin }
  - { name: sweep, cron: "@daily", task: clean }
  - { name: ticks, cron: "* * * * *", emit: tick }
`;
    expect(manifest(text)).toEqual({
      id: "inbox",
      name: "The inbox",
      version: "2.1.0",
      description: "mail that came in",
      entrypoint: { file: "src/main.ts", exportName: "Inbox" },
      dependsOn: ["clock", "store-room"],
      enabled: false,
      config: { folder: "new", limits: { mails: 10, ratio: 0.5, on: true, none: null, list: [1, "two"] } },
      publishes: [
        { topic: "email.received", description: "a mail came in" },
        { topic: "tick", description: "" },
      ],
      subscribes: [
        { topic: "user.notify", handler: "notify_user" },
        { topic: "email.*", handler: "custom" },
      ],
      schedules: [
        { name: "look", cron: "*/5 * * * *", timezone: "Europe/Berlin", task: "look", emit: undefined },
        { name: "sweep", cron: "@daily", timezone: undefined, task: "clean", emit: undefined },
        { name: "ticks", cron: "* * * * *", timezone: undefined, task: "ticks", emit: "tick" },
      ],
    });
  });

  test("[X1] absent fields have their defaults", () => {
    expect(manifest(BASE)).toEqual({
      ...{ id: "inbox", name: "inbox", version: "1.0.0", description: "", enabled: true, config: {} },
      ...{ entrypoint: { file: "main.ts", exportName: "default" }, dependsOn: [] },
      ...{ publishes: [], subscribes: [], schedules: [] },
    });
  });

  test("[X1] [X2] a missing or unknown field is told with its place", () => {
    expect(problems("name: x\n")).toEqual(["1:1: id is missing", "1:1: entrypoint is missing"]);
    expect(problems(`${BASE}colour: red\n`)).toEqual([
      "3:1: colour: is not known here; known are id, name, version, description, entrypoint, depends_on, config, enabled, events, schedules",
    ]);
    expect(problems("")).toHaveLength(3);
    for (const text of ["just text", "[1, 2]", "42", "null"]) {
      expect(problems(text)[0]).toMatch(/^1:1: must be a mapping with id, name, .*, got /);
    }
  });

  test("[X2] all problems of a file are told together, in its order", () => {
    const text = `id: Inbox
version: 1.0
entrypoint: ../main.ts
depends_on: clock
enabled: "yes"
events:
  subscribes:
    - topic: a.b
      handler: invoke_agent
    - topic: "a..b"
    - handler: custom
schedules:
  - name: look
    cron: every day
`;
    const found = problems(text);
    expect(found.map((line) => line.split(": ").slice(0, 2).join(" "))).toEqual([
      "1:5 id",
      "2:10 version",
      "3:13 entrypoint",
      "4:13 depends_on",
      "5:10 enabled",
      "9:16 events.subscribes[0].handler",
      "10:14 events.subscribes[1].topic",
      "11:7 events.subscribes[2]",
      "14:11 schedules[0].cron",
    ]);
    expect(found[1]).toContain('write it in quotes: "1"');
  });

  test("[X2] text that is no YAML is told with line and column", () => {
    expect(problems("id: inbox\nentrypoint: [main.ts\n")[0]).toMatch(/^3:1: /);
    expect(problems(`${BASE}id: twice\n`)).toEqual([expect.stringMatching(/^3:1: .*unique/)]);
    expect(problems(`${BASE}---\n${BASE}`)).toEqual([expect.stringMatching(/^\d:\d+: .*multiple documents/)]);
    expect(problems(`${BASE}config: { when: !!js/function "x" }\n`)).toEqual([expect.stringMatching(/^3:\d+: .*tag/)]);
  });

  test("[X2] config is only JSON, and its aliases unfold within a bound", () => {
    expect(problems(`${BASE}config: { ratio: .nan }\n`)).toEqual([expect.stringMatching(/^3:9: config: .*NaN/)]);
    const bomb = ["a: &a [x, x, x, x, x, x, x, x, x, x]"];
    for (const [name, of] of ["ba", "cb", "dc", "ed", "fe"])
      bomb.push(`${name}: &${name} [${Array(10).fill(`*${of}`).join(", ")}]`);
    expect(problems(`${BASE}config:\n${bomb.map((line) => `  ${line}\n`).join("")}`)).toEqual([
      expect.stringMatching(/^4:3: config: /),
    ]);
    const { config } = manifest(`${BASE}config: { base: &base { a: 1 }, same: *base, __proto__: { polluted: 1 } }\n`);
    expect(config["same"]).toEqual({ a: 1 });
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
    expect(Object.keys(config)).toContain("__proto__");
  });

  test("[X3] ids are names of folders and subscribers, and no entry is there twice", () => {
    for (const id of ["Inbox", "1box", "in box", "../inbox", "in.box", "ä", "a".repeat(65), "''", "3"])
      expect(problems(`id: ${id}\nentrypoint: main.ts\n`)).toHaveLength(1);
    for (const id of ["a", "in-box_2", "a".repeat(64)])
      expect(problems(`id: ${id}\nentrypoint: main.ts\n`)).toEqual([]);
    expect(problems(`${BASE}depends_on: [inbox]\n`)).toEqual(["3:13: depends_on: inbox cannot depend on itself"]);
    expect(problems(`${BASE}depends_on: [a, b, a]\n`)).toEqual(['3:20: depends_on[2]: "a" is there twice']);
    expect(problems(`${BASE}events: { publishes: [{ topic: a }, { topic: a }] }\n`)).toHaveLength(1);
  });

  test("[X4] handlers are notify_user and custom, and invoke_agent is refused with the way to do it", () => {
    const subscribes = (handler: string) => `${BASE}events: { subscribes: [{ topic: a.b, handler: ${handler} }] }\n`;
    expect(problems(subscribes("notify_user"))).toEqual([]);
    expect(problems(subscribes("custom"))).toEqual([]);
    expect(problems(subscribes("invoke_agent"))).toEqual([
      expect.stringMatching(/invoke_agent is not built in.*custom.*context\.invokeAgent/),
    ]);
    expect(problems(subscribes("shout"))).toEqual([
      expect.stringMatching(/must be notify_user or custom, got "shout"/),
    ]);
  });

  test("[X5] published topics are topics, and the system's are its own", () => {
    const publishes = (topic: string) => `${BASE}events: { publishes: [{ topic: "${topic}" }] }\n`;
    const subscribes = (topic: string) => `${BASE}events: { subscribes: [{ topic: "${topic}" }] }\n`;
    for (const topic of ["email.*", "", "a b", "system.user.notify", "system.own"])
      expect(problems(publishes(topic)), topic).toHaveLength(1);
    for (const topic of ["email.received", "tick", "user.signed-up"]) expect(problems(publishes(topic))).toEqual([]);
    for (const topic of ["email.*", "**", "system.user.notify"]) expect(problems(subscribes(topic))).toEqual([]);
    for (const topic of ["email.*x", "system.own", "a..b"]) expect(problems(subscribes(topic)), topic).toHaveLength(1);
  });

  test("[X6] a schedule must come due, know its zone, and have one thing to do", () => {
    const schedule = (fields: string) => `${BASE}schedules:\n  - { name: look, ${fields} }\n`;
    expect(problems(schedule('cron: "61 * * * *"'))).toEqual([
      expect.stringMatching(/^4:25: schedules\[0\]\.cron: "61/),
    ]);
    expect(problems(schedule('cron: "0 0 30 2 *"'))).toEqual([expect.stringMatching(/never comes due/)]);
    expect(problems(schedule('cron: "* * * * *", timezone: Mars/Olympus'))).toEqual([
      expect.stringMatching(/^4:48: schedules\[0\]\.timezone: /),
    ]);
    expect(problems(schedule('cron: "* * * * *", emit: a.b'))).toEqual([expect.stringMatching(/events\.publishes/)]);
    const both = schedule('cron: "* * * * *", emit: a.b, task: c');
    expect(problems(`${both}events: { publishes: [{ topic: a.b }] }\n`)).toEqual([
      expect.stringMatching(/either task or emit/),
    ]);
    expect(problems(schedule("task: c"))).toEqual([expect.stringMatching(/cron is missing/)]);
    expect(problems(`${BASE}schedules: [{ name: A, cron: "* * * * *" }]\n`)).toHaveLength(1);
  });

  test("[X9] an entrypoint stays in its folder and is a module", () => {
    const entrypoint = (path: string) => problems(`id: inbox\nentrypoint: '${path}'\n`);
    for (const path of ["../main.ts", "/etc/passwd.js", "src/../../main.js", "./main.js", "a//main.js", "a\\main.js"])
      expect(entrypoint(path), path).toEqual([expect.stringMatching(/^2:13: entrypoint: must be a path inside/)]);
    for (const path of ["main", "main.py", "main.json", "main.ts:A:B", "main.ts:"])
      expect(entrypoint(path), path).toHaveLength(1);
    for (const path of ["main.ts", "main.mjs", "src/deep/main.js:Name", "x.cjs"]) expect(entrypoint(path)).toEqual([]);
  });
});
