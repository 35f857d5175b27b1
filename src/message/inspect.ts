/**
 * How an object that users hold shows itself where it is printed, by `console.log` or in a debugger: Node, Deno and Bun all ask for this. One
 * line that says which one it is. What else it holds is the program's own affair, and looking at it must not change anything: a value
 * that is printed is not read, and what nobody has looked at is not made.
 */
export const INSPECT: unique symbol = Symbol.for("nodejs.util.inspect.custom");
