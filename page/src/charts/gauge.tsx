import { limit } from "../views/format";
import { linear } from "./scale";
import { useWidth } from "./size";

/** The line from 0 to 100%: the applicant as a dot, the reference as a short mark, the cut-off as a long one. */
export function Gauge({ risk, reference, cutoff }: { risk: number; reference: number; cutoff: number }) {
  const { ref, width } = useWidth<HTMLDivElement>(480);
  const x = linear([0, 1], [9, width - 9]);
  const at = (value: number) => x(Math.min(1, Math.max(0, value)));
  return (
    <div ref={ref} class="gauge" aria-hidden="true">
      <svg width={width} height={40}>
        <line class="track" x1={x(0)} x2={x(1)} y1={16} y2={16} />
        <line class="way" x1={at(reference)} x2={at(risk)} y1={16} y2={16} />
        <line class="reference" x1={at(reference)} x2={at(reference)} y1={11} y2={21} />
        <line class="cutoff" x1={at(cutoff)} x2={at(cutoff)} y1={4} y2={28} />
        <circle class={`dot ${risk > reference ? "up" : "down"}`} cx={at(risk)} cy={16} r={8} />
        <text class="tick" x={x(0)} y={38} text-anchor="start">
          0
        </text>
        <text class="tick" x={x(1)} y={38} text-anchor="end">
          100%
        </text>
        <text class="tick" x={Math.min(Math.max(at(cutoff), 60), width - 70)} y={38} text-anchor="middle">
          {`limit ${limit(cutoff)}`}
        </text>
      </svg>
    </div>
  );
}
