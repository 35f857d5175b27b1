/** Events, live queries and lines over HTTP. */
import { describe, expect, test } from "vitest";
import { eventsOf, serve } from "./http-setup.ts";

describe("streams over HTTP", () => {
  test("[W20] events come with their journal id, and a stream resumes after Last-Event-ID", async () => {
    const { ask, post } = await serve();
    const stream = await ask("/v1/events?types=Order.Placed");
    expect(stream.headers.get("content-type")).toBe("text/event-stream");
    const events = eventsOf(stream);
    for (const price of [1, 2]) await post("/v1/commands/Shop.Order", { price });
    const first = (await events.next()).value as Record<string, string>;
    expect(first).toMatchObject({ event: "Order.Placed", id: expect.any(String) });
    expect(JSON.parse(first["data"] as string)).toMatchObject({ kind: "event", data: { price: 1 } });
    await events.return(undefined);
    const resumed = eventsOf(
      await ask("/v1/events?types=Order.Placed", { headers: { "last-event-id": first["id"] as string } }),
    );
    const second = (await resumed.next()).value as Record<string, string>;
    expect(JSON.parse(second["data"] as string)).toMatchObject({ data: { price: 2 } });
    await resumed.return(undefined);
  });

  test("[W20] a live query tells its answer, and the next one", async () => {
    const { ask, post } = await serve();
    const values = eventsOf(await ask("/v1/live/Shop.Sum"));
    expect((await values.next()).value).toMatchObject({ event: "value", data: "0" });
    await post("/v1/commands/Shop.Order", { price: 30 });
    expect((await values.next()).value).toMatchObject({ event: "value", data: "30" });
    await values.return(undefined);
  });

  test("[W71] a live query resumes after Last-Event-ID, and is told when nothing has changed", async () => {
    const { ask, post } = await serve();
    const values = eventsOf(await ask("/v1/live/Shop.Sum"));
    const { id } = (await values.next()).value as { id: string };
    await values.return(undefined);
    const resumed = eventsOf(await ask("/v1/live/Shop.Sum", { headers: { "last-event-id": id } }));
    expect((await resumed.next()).value).toEqual({ id, event: "same", data: "null" });
    await post("/v1/commands/Shop.Order", { price: 30 });
    expect((await resumed.next()).value).toMatchObject({ event: "value", data: "30" });
    await resumed.return(undefined);
  });

  test("[W2] a query of the kernel is live: the journal by filter tells each new row", async () => {
    const { ask, post, token } = await serve();
    const data = encodeURIComponent(JSON.stringify({ filter: "kind:event type:Order.Placed", fields: "line" }));
    const views = eventsOf(await ask(`/v1/live/Kernel.Journal?data=${data}`));
    const rows = async () => (JSON.parse((await views.next()).value?.["data"] as string) as { rows: unknown[] }).rows;
    expect(await rows()).toEqual([]);
    await post("/v1/commands/Shop.Order", { price: 30 });
    let [row] = await rows();
    // The row of the command moves the head of the journal before the event is there.
    while (row === undefined) [row] = await rows();
    expect(row).toMatchObject({ topic: "Order.Placed", message: { data: null } });
    await views.return(undefined);
    const authorization = `Bearer ${await token("shop only", ["read:Shop.*"])}`;
    expect((await ask("/v1/live/Kernel.Journal", { headers: { authorization } })).status).toBe(403);
  });

  test("[W20] an event is published with 201 once it is durable", async () => {
    const { ask, post } = await serve();
    const published = await post("/v1/events/Mail.Received", { from: "Ada" });
    expect([published.status, await published.json()]).toMatchObject([201, { id: expect.any(Number) }]);
    const lines = await ask("/v1/events?types=Mail.Received&from=start", {
      headers: { accept: "application/x-ndjson" },
    });
    const { value } = await (lines.body as ReadableStream<Uint8Array>).getReader().read();
    expect(JSON.parse(new TextDecoder().decode(value))).toMatchObject({ type: "Mail.Received", data: { from: "Ada" } });
  });

  test("[W20] CloudEvents are taken one by one, in batches and in the binary mode", async () => {
    const { ask } = await serve();
    const event = { specversion: "1.0", id: "a1", source: "/mail", type: "Mail.Received", data: { from: "Ada" } };
    const send = (body: unknown, headers: Record<string, string>) =>
      ask("/v1/events", { method: "POST", body: JSON.stringify(body), headers });
    const one = await send(event, { "content-type": "application/cloudevents+json" });
    expect(one.status).toBe(201);
    const again = await send(event, { "content-type": "application/cloudevents+json" });
    expect(await again.json()).toEqual(await one.json());
    const batch = await send(
      [
        { ...event, id: "a2" },
        { ...event, id: "a3" },
      ],
      {
        "content-type": "application/cloudevents-batch+json",
      },
    );
    expect(((await batch.json()) as { events: unknown[] }).events).toHaveLength(2);
    const binary = await send(event.data, {
      ...{ "content-type": "application/json", "ce-specversion": "1.0", "ce-id": "a4", "ce-source": "/mail" },
      "ce-type": "Mail.Received",
    });
    expect(binary.status).toBe(201);
    const wrong = await send([event, { ...event, id: "" }], { "content-type": "application/cloudevents-batch+json" });
    expect([wrong.status, await wrong.json()]).toMatchObject([422, { detail: expect.stringContaining("event 2") }]);
  });

  test("[W20] lines of messages are answered by lines", async () => {
    const { ask } = await serve();
    const line = (id: string, type: string, data: unknown) =>
      `${JSON.stringify({ kind: "command", type, data, metadata: { id, timestamp: 1 } })}\n`;
    const body = line("m1", "Shop.Order", { price: 3 }) + line("m2", "Shop.Order", { price: 4 });
    const answer = await ask("/v1/messages", { method: "POST", body });
    const answers = (await answer.text())
      .trim()
      .split("\n")
      .map((text) => JSON.parse(text));
    expect(answers.map(({ kind, metadata }) => [kind, metadata.causation])).toEqual([
      ["reply", "m1"],
      ["reply", "m2"],
    ]);
  });

  test("[W24] a stream is told that the server drains", async () => {
    const { ask, server } = await serve();
    const values = eventsOf(await ask("/v1/live/Shop.Sum"));
    await values.next();
    const closed = server.close();
    expect((await values.next()).value).toMatchObject({ event: "bye" });
    expect((await values.next()).done).toBe(true);
    await closed;
  });
});
