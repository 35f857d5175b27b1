// Stands for a payment service over the network. A real one deduplicates by the idempotency key.
const receipts = new Map<string, string>();

export async function charge(price: number, call: { idempotencyKey: string; signal: AbortSignal }): Promise<string> {
  call.signal.throwIfAborted();
  if (price > 100) throw new Error("the card is declined");
  const receipt = receipts.get(call.idempotencyKey) ?? `receipt ${receipts.size + 1}`;
  receipts.set(call.idempotencyKey, receipt);
  return receipt;
}
