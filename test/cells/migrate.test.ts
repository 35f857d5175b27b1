import { describe, expect, test } from "#test";
import type { StandardSchema } from "../../src/cells/schema.ts";
import type { Space } from "../../src/cells/space.ts";
import { setup } from "../scheduler/scheduler-setup.ts";

interface Profile {
  readonly first: string;
  readonly last: string;
  readonly tags: readonly string[];
}

const Profile: StandardSchema<Profile> = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value) =>
      typeof (value as Profile).first === "string" ? { value } : { issues: [{ message: "required", path: ["first"] }] },
  },
};

const migrate = (old: unknown): Profile => {
  const [first = "", last = ""] = (old as { name: string }).name.split(" ");
  return { first, last, tags: [] };
};

const profileOf = (space: Space) => space.cell("profile", undefined, { schema: Profile, migrate });
const stored = (space: Space) => space.cell("profile").get();

async function withOld() {
  const site = await setup();
  site.space.cell("profile").set({ name: "Ada Lovelace" });
  await site.quiet();
  return site;
}

describe("values of an older shape", () => {
  test("[R100] are migrated when they are read, whole and below a key, and stored by the next write", async () => {
    const { space, quiet } = await withOld();
    const profile = profileOf(space);
    const last = space.computed("last", () => profile.key("last").get());
    expect([profile.get(), last.get(), profile.keys()]).toEqual([
      { first: "Ada", last: "Lovelace", tags: [] },
      "Lovelace",
      ["first", "last", "tags"],
    ]);
    expect(profile.get()).toBe(profile.get());
    expect(stored(space)).toEqual({ name: "Ada Lovelace" });
    profile.key("last").set("King");
    await quiet();
    expect([stored(space), last.get()]).toEqual([{ first: "Ada", last: "King", tags: [] }, "King"]);
  });

  test("[R100] are stored by an update, a push below a key and a transaction", async () => {
    const writes: ((profile: ReturnType<typeof profileOf>, space: Space) => unknown)[] = [
      (profile) => profile.update((value) => ({ ...(value as Profile), tags: ["x"] })),
      (profile) => profile.key("tags").push("x"),
      (profile, space) => space.transact(() => profile.key("tags").push("x")),
    ];
    for (const write of writes) {
      const { host, space } = await withOld();
      await host.run(async () => write(profileOf(space), space));
      await host.run(() => space.settled());
      expect(stored(space)).toEqual({ first: "Ada", last: "Lovelace", tags: ["x"] });
    }
  });

  test("[R100] are migrated in another process, after a load", async () => {
    const { host, open } = await withOld();
    const { space } = await open();
    expect(await host.run(() => profileOf(space).pull())).toEqual({ first: "Ada", last: "Lovelace", tags: [] });
  });

  test("[R101] values of an older shape are an error without migrate, and if migrate returns a value that the schema rejects", async () => {
    const { space } = await withOld();
    const strict = space.cell("profile", undefined, { schema: Profile });
    expect(() => strict.get()).toThrow(
      /profile holds a value of another shape; give its cell \{ migrate \}.*\/first: required/,
    );
    const wrong = space.cell("profile", undefined, { schema: Profile, migrate: () => ({ last: "x" }) });
    expect(() => wrong.get()).toThrow("gave a value that the schema rejects");
    expect(() => space.cell("x", undefined, { migrate })).toThrow("has migrate and no schema");
    strict.set({ first: "Ada", last: "King", tags: [] });
    expect(strict.get()?.last).toBe("King");
  });
});
