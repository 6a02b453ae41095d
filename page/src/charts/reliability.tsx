import { percent } from "../views/format";
import { linear, ticks } from "./scale";
import { useWidth } from "./size";

export interface Point {
  /** Mean predicted risk and observed share of a group of rows. */
  predicted: number;
  observed: number;
  low: number;
  high: number;
  rows: number;
}

const MARGIN = { left: 44, right: 12, top: 10, bottom: 38 };

/** Observed against predicted risk, with intervals; on the diagonal the two agree. */
export function Reliability({ points }: { points: readonly Point[] }) {
  const { ref, width } = useWidth<HTMLDivElement>(420);
  const size = Math.min(width, 440);
  const top = Math.min(1, Math.max(0.05, ...points.flatMap((p) => [p.predicted, p.high])) * 1.04);
  const x = linear([0, top], [MARGIN.left, size - MARGIN.right]);
  const y = linear([0, top], [size - MARGIN.bottom, MARGIN.top]);
  const most = Math.max(...points.map((p) => p.rows), 1);
  const marks = ticks(0, top, size < 340 ? 4 : 5);
  return (
    <div ref={ref} class="chart">
      <svg width={size} height={size} role="img" aria-label="Observed against predicted probability; the table below has the numbers">
        {marks.map((t) => (
          <g key={t}>
            <line class="grid" x1={x(0)} x2={x(top)} y1={y(t)} y2={y(t)} />
            <text class="tick" x={MARGIN.left - 6} y={y(t)} dy="0.32em" text-anchor="end">
              {percent(t, 0)}
            </text>
            <text class="tick" x={x(t)} y={size - MARGIN.bottom + 16} text-anchor="middle">
              {percent(t, 0)}
            </text>
          </g>
        ))}
        <line class="diagonal" x1={x(0)} y1={y(0)} x2={x(top)} y2={y(top)} />
        {points.map((p, i) => (
          <g key={i}>
            <line class="interval" x1={x(p.predicted)} x2={x(p.predicted)} y1={y(p.low)} y2={y(p.high)} />
            <circle class="point" cx={x(p.predicted)} cy={y(p.observed)} r={2.5 + 3.5 * Math.sqrt(p.rows / most)} />
          </g>
        ))}
        <text class="axis" x={(x(0) + x(top)) / 2} y={size - 4} text-anchor="middle">
          Predicted
        </text>
        <text class="axis" x={MARGIN.left + 6} y={MARGIN.top + 4} dy="0.6em">
          Observed
        </text>
      </svg>
    </div>
  );
}
