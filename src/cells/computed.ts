/** The output of a computation: a cell that only its node writes. */
import { INSPECT } from "../message/inspect.ts";
import { setComputed } from "../scheduler/computed-error.ts";
import type { NodeAddress, SchedulerNode } from "../scheduler/node.ts";
import { LabelError } from "../store/label.ts";
import { Cell, type OwnOptions } from "./cell.ts";
import { type LinkTargets, refuse } from "./links.ts";

/** A value that is derived from others. Made by `computed`. */
export class Computed<out T = unknown> extends Cell<T> {
  readonly node: SchedulerNode;

  constructor(node: SchedulerNode, targets: LinkTargets, options?: OwnOptions<T>) {
    super(node.output, targets, options);
    this.node = node;
  }

  protected override locate(): NodeAddress {
    const output = this.scheduler.parts.documents.outputOf(this.node);
    if (output === undefined) throw new Error(`node ${this.node.id} has no output`);
    return output;
  }

  /** The value, up to date where its inputs are loaded. Throws the error that its function threw. */
  override get(): T {
    const value = super.get();
    if (this.node.error !== undefined) throw this.node.error;
    // Behind a gate, or an asynchronous run is under way.
    if (value === undefined && this.node.runs === 0) refuse(this, this.targets);
    return value;
  }

  /** The error that its function threw at the last run. */
  get error(): unknown {
    return this.node.error;
  }

  protected override observed(callback: (value: T) => unknown): unknown {
    const value = super.get();
    return this.node.error === undefined ? callback(value) : undefined;
  }

  override set(value: T): never {
    this.requireWritable(value);
  }

  protected override requireWritable(_value: T): never {
    throw setComputed(this);
  }

  override label(_names: readonly string[]): never {
    throw new LabelError("LABEL_MISUSE", `${this} is computed and carries the labels of what it reads; label that`);
  }

  override [INSPECT](): string {
    return `${this.constructor.name} ${this.node.id}`;
  }

  /** Unregisters the computation; its last value stays. */
  dispose(): void {
    this.scheduler.remove(this.node);
  }

  /** Unregisters the computation for good: its stored value is removed too. */
  discard(): void {
    this.scheduler.parts.lifecycle.discard(this.node);
  }
}
