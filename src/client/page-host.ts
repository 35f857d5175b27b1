/** The part of a host that a client needs, small enough for a page: clock, ids and timers of the browser. */
import type { Host } from "../host/host.ts";
import { webPlatform } from "../host/platform.ts";
import { randomUnit } from "../host/random-source.ts";
import { UuidV7Minter } from "../host/uuid-v7.ts";

export type ClientHost = Pick<Host, "now" | "id" | "timer" | "random" | "report">;

export function pageHost(): ClientHost {
  const platform = webPlatform();
  const word = new Uint32Array(1);
  const random = {
    uint32: () => {
      platform.fillRandom(word);
      return word[0] as number;
    },
  };
  const ids = new UuidV7Minter(() => platform.wallMs(), random);
  return {
    now: () => platform.wallMs(),
    id: (nowMs) => ids.mint(nowMs),
    random: () => randomUnit(random),
    report: (error, what = "a listener failed") => platform.complain(what, error),
    timer: (delayMs, fire, options) => {
      let isOver = false;
      const timeout = platform.startTimeout(delayMs, () => {
        isOver = true;
        fire();
      });
      timeout.keepAlive(options?.keepAlive ?? true);
      return {
        cancel: () => {
          if (isOver) return false;
          isOver = true;
          timeout.stop();
          return true;
        },
      };
    },
  };
}
