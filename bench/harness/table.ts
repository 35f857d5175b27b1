/** Prints a report as one table: a row for each metric, a column for each system, then the ratios and the verdict. */
import type { Target } from "./benchmark.ts";
import type { Line, Report } from "./report.ts";

interface Column {
  readonly heading: string;
  readonly align: "left" | "right";
  readonly cell: (line: Line) => string;
}

export function renderReport(report: Report): string {
  const columns = columnsOf(report).filter(({ cell }) => report.lines.some((line) => cell(line) !== ""));
  const cells = report.lines.map((line) => columns.map(({ cell }) => cell(line)));
  const widths = columns.map(({ heading }, at) => Math.max(heading.length, ...cells.map((row) => row[at]!.length)));
  const row = (texts: readonly string[]): string =>
    columns
      .map(({ align }, at) => pad(texts[at]!, widths[at]!, align))
      .join("  ")
      .trimEnd();

  const out = [`${report.name}: ${report.what} (${(report.tookMs / 1000).toFixed(0)} s)`, ""];
  out.push(row(columns.map(({ heading }) => heading)), widths.map((width) => "─".repeat(width)).join("  "));
  report.lines.forEach((line, index) => {
    if (line.group !== report.lines[index - 1]?.group) out.push(line.group);
    out.push(row(withoutRepetition(report.lines, index, cells[index]!)));
  });
  out.push("", summary(report.lines));
  for (const [system, reason] of Object.entries(report.unavailable)) out.push(`${system} unavailable: ${reason}`);
  for (const { workload, system, error } of report.crashes)
    out.push(`${system} crashed in ${workload}: ${error.stack}`);
  return out.join("\n");
}

function columnsOf(report: Report): readonly Column[] {
  const systems = report.systems.map((system): Column => {
    return { heading: system, align: "right", cell: (line) => number(line.values[system]) };
  });
  const named = [...new Set(report.lines.flatMap((line) => Object.keys(line.toNamed)))];
  return [
    { heading: "workload", align: "left", cell: (line) => line.workload },
    { heading: "metric", align: "left", cell: (line) => line.metric },
    ...systems,
    { heading: "of limit", align: "right", cell: (line) => times(line.toLimit) },
    { heading: "of best peer", align: "right", cell: (line) => times(line.toBestPeer) },
    ...named.map((system): Column => {
      return { heading: `of ${system}`, align: "right", cell: (line) => times(line.toNamed[system]) };
    }),
    { heading: "worst round", align: "right", cell: (line) => line.worst.map(times).join(", ") },
    { heading: "target", align: "left", cell: (line) => line.targets.map(targetText).join(", ") },
    { heading: "", align: "left", cell: (line) => line.verdict ?? "" },
  ];
}

function pad(text: string, width: number, align: Column["align"]): string {
  return align === "left" ? text.padEnd(width) : text.padStart(width);
}

/** The workload's name stands at its first metric only. */
function withoutRepetition(lines: readonly Line[], index: number, cells: readonly string[]): readonly string[] {
  const [line, before] = [lines[index]!, lines[index - 1]];
  const repeated = before?.workload === line.workload && before.group === line.group;
  return repeated ? ["", ...cells.slice(1)] : cells;
}

function summary(lines: readonly Line[]): string {
  const judged = lines.filter((line) => line.verdict);
  if (judged.length === 0) return "no targets";
  const missed = judged.filter((line) => line.verdict === "missed");
  const names = missed.map((line) => `${line.group} · ${line.workload} · ${line.metric}`);
  const reached = `${judged.length - missed.length} of ${judged.length} targets reached`;
  return missed.length === 0 ? reached : `${reached}; missed: ${names.join("; ")}`;
}

export function targetText({ of, atLeast, atMost }: Target): string {
  const unit = of === "itself" ? "" : "x";
  const bounds = [atLeast === undefined ? "" : `≥ ${atLeast}${unit}`, atMost === undefined ? "" : `≤ ${atMost}${unit}`];
  const reference = typeof of === "object" ? of.system : of;
  return `${bounds.filter(Boolean).join(" and ")}${of === "itself" ? "" : ` ${reference}`}`;
}

function times(ratio: number | undefined): string {
  // 0 divided by 0, where both counted no runs.
  return ratio === undefined || !Number.isFinite(ratio) ? "" : `${ratio < 10 ? ratio.toFixed(2) : ratio.toFixed(0)}x`;
}

/** The numbers are not more exact than three significant digits. */
function number(value: number | undefined): string {
  if (value === undefined) return "-";
  if (value === 0) return "0";
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(3)));
}
