/** The suite's view of a backend: a fresh store for each test, and ways to open its data again. */
import type { Store } from "../../../src/store/store.ts";
import type { ControlledHost } from "../controlled-host.ts";

export interface OpenOptions {
  /** The number of commits that the change feed of a space must keep; the backend's default unless given. */
  readonly changesKept?: number;
  /** Bytes of one message's data. */
  readonly payloadBytesMax?: number;
}

/** Disposing of it closes every store it opened and removes the data. */
export interface StoreUnderTest extends AsyncDisposable {
  readonly store: Store;
  readonly host: ControlledHost;
  /** Whether ids of journal rows cannot be foreseen: they have gaps, and depend on the store object. */
  readonly idsAreChosen?: boolean;
  /** Another store object on the same data, as a second process would have. */
  second(): Promise<Store>;
  /** Closes every store and opens the data again, as the next start would. */
  reopen(): Promise<Store>;
}

export type OpenStore = (options?: OpenOptions) => Promise<StoreUnderTest>;

/** How a backend opens a store. */
export interface StoreData {
  open(): Promise<Store>;
  remove(): Promise<void>;
}

export async function storeUnderTest(host: ControlledHost, data: StoreData): Promise<StoreUnderTest> {
  const opened: Store[] = [];
  const open = async () => {
    const store = await data.open();
    opened.push(store);
    return store;
  };
  const closeAll = async () => {
    for (const store of opened.splice(0)) await store.close();
  };
  return {
    store: await open(),
    host,
    second: open,
    reopen: async () => {
      await closeAll();
      return open();
    },
    [Symbol.asyncDispose]: async () => {
      await closeAll();
      await data.remove();
    },
  };
}
