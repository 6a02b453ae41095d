import { count, points as pp } from "../views/format";
import { short } from "./columns";
import { linear, thin } from "./scale";
import { useWidth } from "./size";

interface Props {
  /** Names of the levels of the first feature (down) and of the second (across). */
  down: readonly string[];
  across: readonly string[];
  /** Effects and training rows, row by row. */
  effects: readonly (number | null)[];
  rows: readonly number[];
  label: string;
}

const LEFT = 104;
const BOTTOM = 26;
const SHADES = 5;

/** A pair of features: color is what the pair adds to the risk, the size of a square is how many rows it had. */
export function Heat({ down, across, effects, rows, label }: Props) {
  const { ref, width } = useWidth<HTMLDivElement>(480);
  const side = Math.min(46, (width - LEFT - 8) / Math.max(1, across.length));
  const tall = Math.min(34, Math.max(14, side));
  const largest = Math.max(1e-12, ...effects.map((e) => Math.abs(e ?? 0)));
  const shade = (effect: number | null) => Math.round(((effect ?? 0) / largest) * SHADES);
  const most = Math.max(...rows, 1);
  const size = linear([0, 1], [0.3, 0.94]);
  const height = down.length * tall;
  return (
    <div ref={ref} class="chart">
      <svg width={width} height={height + BOTTOM} role="img" aria-label={label}>
        {down.map((name, i) => (
          <text key={i} class="tick" x={LEFT - 8} y={(i + 0.5) * tall} dy="0.32em" text-anchor="end">
            {short(name, 16)}
          </text>
        ))}
        {effects.map((effect, k) => {
          const [i, j] = [Math.floor(k / across.length), k % across.length];
          const share = (rows[k] ?? 0) > 0 ? size(Math.sqrt((rows[k] ?? 0) / most)) : 0.16;
          const [w, h] = [side * share, tall * share];
          return (
            <g key={k}>
              <title>{`${down[i]}, ${across[j]}: ${pp(effect, 2)} points, ${count(rows[k])} rows`}</title>
              <rect class="cell" x={LEFT + j * side} y={i * tall} width={side} height={tall} />
              <rect
                class={`heat heat-${shade(effect) < 0 ? "m" : "p"}${Math.abs(shade(effect))}`}
                x={LEFT + (j + 0.5) * side - w / 2}
                y={(i + 0.5) * tall - h / 2}
                width={w}
                height={h}
                rx={1}
              />
            </g>
          );
        })}
        {thin(across.length, (across.length * side) / 58).map((j) => (
          <text key={j} class="tick" x={LEFT + (j + 0.5) * side} y={height + 16} text-anchor="middle">
            {short(across[j]!, Math.max(5, Math.floor(Math.max(side, 58) / 6.2)))}
          </text>
        ))}
      </svg>
    </div>
  );
}
