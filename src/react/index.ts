/**
 * `millrace/react`: live queries, commands and the state of the connection as hooks, typed by the app.
 */
export { type CommandState, createHooks, type Hooks, type QueryState } from "./hooks.ts";
