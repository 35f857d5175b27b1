/**
 * The symbol with which Node, Deno and Bun let an object define its printed form (`console.log`, debuggers). Our
 * objects print one line with their identity. Printing must have no side effects: it reads no value and creates no
 * node.
 */
export const INSPECT: unique symbol = Symbol.for("nodejs.util.inspect.custom");
