import { describe, expect, test } from "vitest";
import { commitBy, committed, set } from "../conformance/requests.ts";
import { StoreFile } from "./store-file.ts";

describe("the feed under constant writes", () => {
  test("[S92] the feed keeps its length under constant writes, for any number of commits per batch", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { feedCommits: 20, batchMs: 60_000 } });
    const database = file.database();
    let made = 0;
    for (let batch = 0; batch < 12; batch++) {
      const commits = Array.from({ length: 600 }, () => {
        made++;
        return store.commit(commitBy("s", made, { patches: [set(`receipt ${made}`, [], { made })] }));
      });
      for (const outcome of await Promise.all(commits)) committed(outcome);
    }
    // The last batch, the one before it, which is taken out with the next, and what is not worth a job.
    const { behind } = database.prepare("SELECT sequence - floor AS behind FROM space").get() as { behind: number };
    expect(behind).toBeLessThanOrEqual(20 + 2 * 600 + 200);
  });
});

describe("the commit log of several processes", () => {
  test("[S92] each process shortens the commit log, even if none makes as many commits as the limit", async () => {
    await using file = new StoreFile();
    let made = 0;
    for (let process = 0; process < 8; process++) {
      const store = await file.open({ tuning: { commitsRemembered: 100 } });
      for (let batch = 0; batch < 3; batch++) {
        const commits = Array.from({ length: 600 }, () => store.commit(commitBy("s", ++made)));
        for (const outcome of await Promise.all(commits)) committed(outcome);
      }
      await store.close();
    }
    const kept = file.database().prepare("SELECT sum(last - first + 1) AS commits FROM commit_run").get();
    expect(Number(kept?.["commits"])).toBeLessThan(100 + 2 * 1_800);
    const store = await file.open();
    expect(committed(await store.commit(commitBy("s", made))).replayed).toBe(true);
  });
});
