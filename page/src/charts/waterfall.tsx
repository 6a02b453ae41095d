import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { percent, points } from "../views/format";
import { Name } from "../views/name";
import type { Told } from "../views/words";
import { Bar } from "./bar";
import { extent } from "./scale";

interface Props {
  explanation: Told;
  /** Words for where it starts and where it ends. */
  from: string;
  to: string;
}

const PRINTED = 30; // rows on paper, so that one sheet holds them; the smallest pieces are added up
const FLAT = 0.0005;

interface Piece {
  name: string;
  text: string;
  from: number;
  to: number;
}

/** From the reference's risk to the applicant's: a bar per subscale, and inside it one per feature or pair. */
export function Waterfall({ explanation, from, to }: Props) {
  const closed = useSignal<ReadonlySet<string>>(new Set());
  const { referenceRisk, risk } = explanation;
  let at = referenceRisk;
  const parts = explanation.parts.map((part) => {
    const begin = at;
    at += part.total;
    let inside = begin;
    const pieces = part.terms
      .map((t): Piece => ({ name: t.name, text: t.text, from: inside, to: (inside += t.value) }));
    return { name: part.name, from: begin, to: at, pieces };
  });
  const all = parts.flatMap((p) => p.pieces);
  const [low, high] = extent([referenceRisk, risk, ...[...parts, ...all].flatMap((p) => [p.from, p.to])]);
  // Round ends, so that the bars keep their scale while somebody drags.
  const domain = [Math.floor(low * 10) / 10, Math.max(Math.ceil(high * 10) / 10, Math.floor(low * 10) / 10 + 0.1)] as const;
  const limit = [...all].map((p) => Math.abs(p.to - p.from)).sort((a, b) => b - a)[Math.max(8, PRINTED - parts.length)] ?? -1;
  const printed = (p: Piece) => Math.abs(p.to - p.from) > Math.max(limit, FLAT);
  const rest = all.filter((p) => !printed(p)).reduce((sum, p) => sum + p.to - p.from, 0);
  const toggle = (name: string) => {
    const next = new Set(closed.value);
    if (!next.delete(name)) next.add(name);
    closed.value = next;
  };
  return (
    <table class="waterfall">
      <caption class="unseen">{`From ${from.toLowerCase()} to ${to.toLowerCase()}, in points`}</caption>
      <Widths />
      <thead>
        <tr>
          <th scope="col">
            <span class="unseen">Feature</span>
          </th>
          <th scope="col">
            <span class="ends">
              <span>{percent(domain[0], 0)}</span>
              <span>{percent(domain[1], 0)}</span>
            </span>
          </th>
          <th scope="col" class="numeric">
            <abbr title="percentage points">points</abbr>
          </th>
        </tr>
      </thead>
      <tbody class="whole">
        <Whole name={from} risk={referenceRisk} domain={domain} />
      </tbody>
      {parts.map((part) => {
        // A part of one piece is one row, and a single part needs no name.
        const alone = part.pieces.length === 1 || (parts.length === 1 && part.pieces.length > 0);
        const open = alone || !closed.value.has(part.name);
        return (
          <tbody key={part.name}>
            {!alone && (
              <tr class="part">
                <th scope="rowgroup">
                  {part.pieces.length > 1 ? (
                    <button type="button" aria-expanded={open} onClick={() => toggle(part.name)}>
                      <Name text={part.name} />
                    </button>
                  ) : (
                    <Name text={part.name} />
                  )}
                </th>
                <td class="bar-cell">
                  <Bar class={tone(part)} from={part.from} to={part.to} domain={domain} mark={referenceRisk} />
                </td>
                <td class="numeric">{points(part.to - part.from)}</td>
              </tr>
            )}
            {open &&
              part.pieces.map((p) => (
                <Term key={p.name} {...p} low={domain[0]} high={domain[1]} mark={referenceRisk} printed={printed(p)} />
              ))}
          </tbody>
        );
      })}
      <tbody class="whole">
        {Math.abs(rest) >= FLAT && (
          <tr class="term paper-only">
            <th scope="row">All others together</th>
            <td />
            <td class="numeric">{points(rest)}</td>
          </tr>
        )}
        <Whole name={to} risk={risk} domain={domain} />
      </tbody>
    </table>
  );
}

interface TermProps extends Piece {
  low: number;
  high: number;
  mark: number;
  printed: boolean;
}

function Term({ name, text, from, to, low, high, mark, printed }: TermProps) {
  // Rows that stay where they are need no second look while another feature is dragged.
  return useMemo(
    () => (
      <tr class={`term ${printed ? "" : "screen-only"}`}>
        <th scope="row">
          <span class="name">
            <Name text={name} />
          </span>{" "}
          <span class="level">{text}</span>
        </th>
        <td class="bar-cell">
          <Bar class={`thin ${tone({ from, to })}`} from={from} to={to} domain={[low, high]} mark={mark} />
        </td>
        <td class="numeric">{points(to - from)}</td>
      </tr>
    ),
    [name, text, from, to, low, high, mark, printed],
  );
}

/** The widths of the columns of a table with bars. */
export function Widths({ models = 1 }: { models?: number }) {
  return (
    <colgroup>
      <col class="name-column" />
      {Array.from({ length: models }, (_, k) => [<col key={`${k} bar`} />, <col key={k} class="number-column" />])}
    </colgroup>
  );
}

function Whole({ name, risk, domain }: { name: string; risk: number; domain: readonly [number, number] }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class="bar-cell">
        <Bar class="total" from={risk} to={risk} domain={domain} />
      </td>
      <td class="numeric">{percent(risk)}</td>
    </tr>
  );
}

const tone = (p: { from: number; to: number }) =>
  Math.abs(p.to - p.from) < 5e-13 ? "none" : p.to > p.from ? "up" : "down";
