import { percent } from "../views/format";
import { linear, ticks } from "./scale";
import { useWidth } from "./size";

export interface Run {
  name: string;
  class: string;
  points: readonly (readonly [number, number])[];
}

const HEIGHT = 220;
const MARGIN = { left: 44, right: 14, top: 10, bottom: 38 };

/** Shares against shares, as a few lines. */
export function Lines({ runs, across, label }: { runs: readonly Run[]; across: string; label: string }) {
  const { ref, width } = useWidth<HTMLDivElement>(480);
  const all = runs.flatMap((r) => r.points);
  const right = Math.min(1, Math.max(...all.map((p) => p[0]), 0.01));
  const top = Math.min(1, Math.max(...all.map((p) => p[1]), 0.01));
  const x = linear([0, right], [MARGIN.left, width - MARGIN.right]);
  const y = linear([0, top], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  return (
    <div ref={ref} class="chart">
      <svg width={width} height={HEIGHT} role="img" aria-label={label}>
        {ticks(0, top, 4).map((t) => (
          <g key={t}>
            <line class="grid" x1={x(0)} x2={x(right)} y1={y(t)} y2={y(t)} />
            <text class="tick" x={MARGIN.left - 6} y={y(t)} dy="0.32em" text-anchor="end">
              {percent(t, 0)}
            </text>
          </g>
        ))}
        {ticks(0, right, Math.floor(width / 90)).map((t) => (
          <text key={t} class="tick" x={x(t)} y={HEIGHT - MARGIN.bottom + 16} text-anchor="middle">
            {percent(t, 0)}
          </text>
        ))}
        {runs.map((r) => (
          <path key={r.name} class={`run ${r.class}`} d={r.points.map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("")} />
        ))}
        <text class="axis" x={(x(0) + x(right)) / 2} y={HEIGHT - 4} text-anchor="middle">
          {across}
        </text>
      </svg>
      <p class="legend">
        {runs.map((r) => (
          <span key={r.name} class={`key ${r.class}`}>
            {r.name}
          </span>
        ))}
      </p>
    </div>
  );
}
