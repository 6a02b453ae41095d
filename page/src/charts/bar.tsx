import { linear } from "./scale";

interface Props {
  from: number;
  to: number;
  /** The numbers at both ends of the row. */
  domain: readonly [number, number];
  /** Where a thin line stands; usually the reference. */
  mark?: number | undefined;
  class?: string | undefined;
}

const LEAST = 5; // thousandths of the cell, so that a bar can be seen

/** One bar of a row of a table. It stretches with its cell and holds no text, so it needs no measuring. */
export function Bar({ from, to, domain, mark, class: name = "" }: Props) {
  const x = linear(domain, [0, 1000]);
  const width = Math.max(Math.abs(x(to) - x(from)), LEAST);
  const left = Math.min(Math.max((x(from) + x(to) - width) / 2, 0), 1000 - width);
  return (
    <svg class={`bar ${name}`} viewBox="0 0 1000 20" preserveAspectRatio="none" aria-hidden="true">
      {mark !== undefined && <line class="bar-mark" x1={x(mark)} x2={x(mark)} y1={0} y2={20} />}
      <rect class="bar-body" x={left} y={4} width={width} height={12} />
    </svg>
  );
}
