import { count, percent } from "../views/format";
import { linear, ticks } from "./scale";
import { useWidth } from "./size";

interface Props {
  /** The ends of the buckets, one more than there are buckets. */
  ends: readonly number[];
  rows: readonly number[];
  bad: readonly number[];
  label: string;
}

const HEIGHT = 170;
const MARGIN = { left: 44, right: 14, top: 8, bottom: 38 };

/** How many rows have which prediction; the lower part of a bar had the positive outcome. */
export function Histogram({ ends, rows, bad, label }: Props) {
  const { ref, width } = useWidth<HTMLDivElement>(480);
  const x = linear([ends[0]!, ends[ends.length - 1]!], [MARGIN.left, width - MARGIN.right]);
  const most = Math.max(...rows, 1);
  const y = linear([0, most], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  return (
    <div ref={ref} class="chart">
      <svg width={width} height={HEIGHT} role="img" aria-label={label}>
        {ticks(0, most, 3).map((t) => (
          <g key={t}>
            <line class="grid" x1={MARGIN.left} x2={width - MARGIN.right} y1={y(t)} y2={y(t)} />
            <text class="tick" x={MARGIN.left - 6} y={y(t)} dy="0.32em" text-anchor="end">
              {count(t)}
            </text>
          </g>
        ))}
        {rows.map((n, i) => {
          const [a, b] = [x(ends[i]!) + 0.5, x(ends[i + 1]!) - 0.5];
          return (
            <g key={i}>
              <title>{`${percent(ends[i])} to ${percent(ends[i + 1])}: ${count(n)} rows, ${count(bad[i])} in the lower part`}</title>
              <rect class="count" x={a} width={Math.max(0, b - a)} y={y(n)} height={y(0) - y(n)} />
              <rect class="count-bad" x={a} width={Math.max(0, b - a)} y={y(bad[i] ?? 0)} height={y(0) - y(bad[i] ?? 0)} />
            </g>
          );
        })}
        {ticks(ends[0]!, ends[ends.length - 1]!, Math.floor(width / 90)).map((t) => (
          <text key={t} class="tick" x={x(t)} y={HEIGHT - MARGIN.bottom + 16} text-anchor="middle">
            {percent(t, 0)}
          </text>
        ))}
        <text class="axis" x={width / 2} y={HEIGHT - 4} text-anchor="middle">
          Predicted
        </text>
      </svg>
    </div>
  );
}
