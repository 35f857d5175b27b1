/** The sources of work that keep the loop alive (RFC 0032 §16), counted. */
export interface Liveness {
  /** Work is left or may come: a daemon continues, a batch process ends when this turns false. */
  readonly alive: boolean;
  /** No work is under way: lanes and mailboxes are empty and no requester waits. */
  readonly quiescent: boolean;
  readonly systemLane: number;
  readonly userLane: number;
  readonly pendingRequests: number;
  readonly mailboxes: number;
  readonly timers: number;
  /** Adapters that may bring messages in. */
  readonly adapters: number;
  /** Bytes that clients have not taken yet. */
  readonly frames: number;
  readonly turns: number;
}

/** An adapter while it is open. */
export interface AdapterLife {
  /** Bytes or messages that are written and not yet taken by the clients. */
  readonly frames: number;
  /** Takes no more requests; earlier ones are still answered. */
  quiet?(): void;
  /** Closes its connections; `EventLoop.stop` calls it for adapters that are still attached. */
  close?(): unknown;
}
