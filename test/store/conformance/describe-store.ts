/**
 * The conformance suite: the behaviour of every backend, rule by rule of `docs/SPEC.md`, on a fresh store for each
 * test. A backend calls `describeStore` with a function that opens it.
 */
import { describe } from "#test";
import { basisCases } from "./basis.ts";
import { commitCases } from "./commits.ts";
import { conflictCases } from "./conflicts.ts";
import { consumerCases } from "./consumers.ts";
import { documentCases } from "./documents.ts";
import { dueCases } from "./due.ts";
import { erasingCases } from "./erasing.ts";
import { feedCases } from "./feed.ts";
import { historyCases } from "./histories.ts";
import { journalCases } from "./journal.ts";
import { largeHistories } from "./large-histories.ts";
import { leaseCases } from "./leases.ts";
import { lifeCases } from "./life.ts";
import { listCases } from "./lists.ts";
import { modelCases } from "./model.ts";
import { receiptHistories } from "./receipt-histories.ts";
import { receiptCases } from "./receipts.ts";
import { rememberedCases } from "./remembered.ts";
import { settlingCases } from "./settling.ts";
import { sizeCases } from "./sizes.ts";
import type { OpenStore } from "./store-under-test.ts";
import { valueCases } from "./values.ts";

export interface SuiteOptions {
  /** Random histories to try; each takes some forty steps. */
  readonly modelRuns: number;
  /** Whether random histories are compared with the plain model. Default: true. */
  readonly hasModel?: boolean;
  /** Leaves out large documents and long histories. */
  readonly isBrief?: boolean;
}

export function describeStore(name: string, open: OpenStore, options: SuiteOptions): void {
  const { modelRuns, hasModel = true, isBrief = false } = options;
  describe(name, () => {
    documentCases(open);
    commitCases(open);
    conflictCases(open);
    listCases(open);
    if (!isBrief) sizeCases(open);
    valueCases(open);
    basisCases(open);
    feedCases(open);
    journalCases(open);
    leaseCases(open);
    settlingCases(open);
    consumerCases(open);
    rememberedCases(open);
    receiptCases(open);
    receiptHistories(open, Math.ceil(modelRuns / 5));
    if (!isBrief) largeHistories(open, Math.ceil(modelRuns / 40));
    dueCases(open);
    erasingCases(open);
    lifeCases(open);
    historyCases(open);
    if (hasModel) modelCases(open, modelRuns);
  });
}
