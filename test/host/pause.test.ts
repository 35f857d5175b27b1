import { expect, test } from "#test";
import { pause } from "../../src/host/pause.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";

test("[H4] a pause ends when its time has passed, and not before", async () => {
  const host = simulatedHost(1);
  let isOver = false;
  const paused = pause(host, 50).then(() => {
    isOver = true;
  });
  await host.advance(49);
  expect(isOver).toBe(false);
  await host.advance(1);
  await paused;
  expect(isOver).toBe(true);
});
