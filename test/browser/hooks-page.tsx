/** Components that show one live query, and a second one with other data, until a button takes them away. */
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { connect } from "../../src/client/browser.ts";
import { createHooks } from "../../src/react/index.ts";
import type { shop } from "../app/shop-app.ts";

const { useQuery, useCommand } = createHooks(await connect<typeof shop>({ token: location.hash.slice(1) }));

function Sum() {
  const { data, isLoading } = useQuery("Shop.Sum");
  return <p>{isLoading ? "loading" : `sum ${data}`}</p>;
}

function Page() {
  const [shown, show] = useState(3);
  const order = useCommand("Shop.Order");
  return (
    <>
      {Array.from({ length: shown }, (_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the components have no state
        <Sum key={at} />
      ))}
      <button type="button" onClick={() => show(shown - 1)}>
        fewer
      </button>
      <button type="button" onClick={() => order.send({ price: 300 })}>
        too dear
      </button>
      {order.error && <p role="alert">{order.error.reason}</p>}
      {order.isPending && <p>pending</p>}
    </>
  );
}

createRoot(document.body.appendChild(document.createElement("div"))).render(<Page />);
