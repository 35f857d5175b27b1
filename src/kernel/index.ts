/** `millrace/kernel`: everything put together. Needs Node, for its socket. */
export { SocketError } from "../adapters/unix-socket.ts";
export { Kernel, type KernelHealth, type KernelOptions, type KernelParts } from "./kernel.ts";
