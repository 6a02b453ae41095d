import { count, points as pp } from "../views/format";
import { extent, linear, thin, ticks } from "./scale";
import { useWidth } from "./size";

/** One level of a feature. */
export interface Column {
  label: string;
  /** Change of the risk of the typical applicant; null where nothing is known. */
  effect: number | null;
  low?: number | undefined;
  high?: number | undefined;
  rows: number;
  bad: number;
  /** A special level: a special value, below the bound, missing, unseen. */
  outside: boolean;
}

interface Props {
  columns: readonly Column[];
  /** Text at the boundary right of a column, where columns are intervals of numbers. */
  edges?: readonly string[] | undefined;
  /** A continuous run of effects instead of steps: (position in columns, effect). */
  curve?: readonly (readonly [number, number])[] | undefined;
  /** The numbers at both ends of the curve. */
  ends?: readonly [string, string] | undefined;
  label: string;
}

const HEIGHT = 168;
const COUNTS = 42;
const MARGIN = { left: 42, right: 8, top: 12, between: 10, bottom: 24 };
const WIDE = 6; // a curve is as wide as this many levels
const GAP = 0.6; // between the ordered columns and the special ones, in columns

/** What every level does to the risk of the typical applicant, above how many training rows it had. */
export function Columns({ columns, edges, curve, ends, label }: Props) {
  const { ref, width } = useWidth<HTMLDivElement>(480);
  const ordered = columns.filter((c) => !c.outside).length;
  const wide = curve ? WIDE : 1;
  const span = ordered * wide + (columns.length - ordered) + (ordered && ordered < columns.length ? GAP : 0);
  const step = (width - MARGIN.left - MARGIN.right) / Math.max(span, 1);
  const wideStep = wide * step;
  const left = (i: number) =>
    MARGIN.left + (i < ordered ? i * wideStep : ordered * wideStep + ((ordered ? GAP : 0) + i - ordered) * step);
  const across = (i: number) => (i < ordered ? wideStep : step);
  const run = curve ?? [];
  const [low, high] = extent([0, ...columns.flatMap((c) => [c.effect, c.low, c.high]), ...run.map((p) => p[1])], 0.06);
  const y = linear(high > low ? [low, high] : [-0.01, 0.01], [MARGIN.top + HEIGHT, MARGIN.top]);
  const base = MARGIN.top + HEIGHT + MARGIN.between + COUNTS;
  const tall = linear([0, Math.max(...columns.map((c) => c.rows), 1)], [0, COUNTS]);
  const inset = curve ? 0.01 : 0.1;
  const digits = high - low < 0.02 ? 1 : 0;
  return (
    <div ref={ref} class="chart columns">
      <svg width={width} height={base + MARGIN.bottom} role="img" aria-label={label}>
        {ticks(low, high, 4).map((t) => (
          <g key={t}>
            <line class={t === 0 ? "zero" : "grid"} x1={MARGIN.left} x2={width - MARGIN.right} y1={y(t)} y2={y(t)} />
            <text class="tick" x={MARGIN.left - 6} y={y(t)} dy="0.32em" text-anchor="end">
              {pp(t, digits)}
            </text>
          </g>
        ))}
        {columns.map((c, i) => (
          <g key={i}>
            <title>{`${c.label}: ${pp(c.effect)} points, ${count(c.rows)} rows`}</title>
            <rect class="hit" x={left(i)} width={across(i)} y={MARGIN.top} height={base - MARGIN.top} />
            <Counted x={left(i) + across(i) * inset} width={across(i) * (1 - 2 * inset)} base={base} rows={tall(c.rows)} bad={tall(c.bad)} />
            {c.low !== undefined && c.high !== undefined && (
              <rect class="band" x={left(i)} width={across(i)} y={y(c.high)} height={Math.max(0, y(c.low) - y(c.high))} />
            )}
            {c.effect !== null && c.outside && (
              <line class="step outside" x1={left(i) + step * 0.15} x2={left(i) + step * 0.85} y1={y(c.effect)} y2={y(c.effect)} />
            )}
          </g>
        ))}
        {curve ? (
          <path class="step" d={path(curve.map(([i, effect]) => [MARGIN.left + i * wideStep, y(effect)]))} />
        ) : (
          <path class="step" d={steps(columns.slice(0, ordered), left, step, y, edges !== undefined)} />
        )}
        <line class="zero" x1={MARGIN.left} x2={width - MARGIN.right} y1={base} y2={base} />
        <Names columns={columns} edges={edges ?? (ends && [])} ordered={ordered} left={left} step={step} y={base + 15} />
        {ends?.map((text, i) => (
          <text key={i} class="tick" x={left(0) + i * ordered * wideStep} y={base + 15} text-anchor={i ? "end" : "start"}>
            {text}
          </text>
        ))}
      </svg>
    </div>
  );
}

function Counted(p: { x: number; width: number; base: number; rows: number; bad: number }) {
  return (
    <>
      <rect class="count" x={p.x} width={p.width} y={p.base - p.rows} height={p.rows} />
      <rect class="count-bad" x={p.x} width={p.width} y={p.base - p.bad} height={p.bad} />
    </>
  );
}

interface NamesProps {
  columns: readonly Column[];
  edges: readonly string[] | undefined;
  ordered: number;
  left: (i: number) => number;
  step: number;
  y: number;
}

/** The boundaries of intervals, or the names of categories; as many as there is width for. */
function Names({ columns, edges, ordered, left, step, y }: NamesProps) {
  const inside = edges
    ? thin(edges.length, (edges.length * step) / 52).map((k) => [k, left(0) + (k + 1) * step, edges[k]!] as const)
    : thin(ordered, (ordered * step) / 64).map((k) => [k, left(k) + step / 2, columns[k]!.label] as const);
  const outside = columns.map((c, k) => [k, left(k) + step / 2, c.label] as const).filter(([k]) => columns[k]!.outside);
  const most = (n: number) => Math.max(3, Math.floor(n / 6.2));
  const shown = step > 30 ? outside : thin(outside.length, (outside.length * step) / 44).map((i) => outside[i]!);
  return (
    <>
      {inside.map(([k, x, text]) => (
        <text key={k} class="tick" x={x} y={y} text-anchor="middle">
          {short(text, most(edges ? 56 : Math.max(step, 64)))}
        </text>
      ))}
      {shown.map(([k, x, text]) => (
        <text key={k} class="tick outside" x={x} y={y} text-anchor="middle">
          {short(text, most(Math.max(step, 44)))}
        </text>
      ))}
    </>
  );
}

export const short = (text: string, most: number) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

const path = (points: readonly (readonly number[])[]) =>
  points.map(([x, y], i) => `${i ? "L" : "M"}${x!.toFixed(1)} ${y!.toFixed(1)}`).join("");

/** A staircase over intervals; single strokes over categories, which have nothing between them. */
function steps(
  columns: readonly Column[],
  left: (i: number) => number,
  step: number,
  y: (effect: number) => number,
  joined: boolean,
): string {
  let text = "";
  let open = false;
  columns.forEach((c, i) => {
    if (c.effect === null) return void (open = false);
    const inset = joined ? 0 : step * 0.15;
    const [a, b] = [left(i) + inset, left(i) + step - inset];
    text += `${open && joined ? "L" : "M"}${a.toFixed(1)} ${y(c.effect).toFixed(1)}L${b.toFixed(1)} ${y(c.effect).toFixed(1)}`;
    open = true;
  });
  return text;
}
