import { useMemo } from "preact/hooks";
import { type Input, type Model, risk, type Value } from "../engine";
import { linear } from "../charts/scale";
import type { Store } from "../state";
import { points } from "./format";
import { Name } from "./name";
import { groupOf, say } from "./words";

const STEPS = 24; // of the slider, per bin
const UNSEEN = "\u0000unseen";
const MISSING = "\u0000missing";

interface Props {
  model: Model;
  input: Input;
  value: Value;
  onChange: (value: Value) => void;
  /** Tells apart the controls of one feature, and names the applicant where there are two. */
  id: string;
  whose?: string;
}

// ---- numbers

/** Between the slider and the value: every bin has the same length, however far apart its ends are. */
export interface Track {
  knots: number[];
  toValue: (position: number) => number;
  toPosition: (value: number) => number;
  /** The value at a position; a step of one, as a key makes it, goes on until the value changes. */
  next: (value: number | null, position: number) => number;
}

export function trackOf(input: Input): Track {
  const [low, high] = [input.low ?? 0, input.high ?? 1];
  const inside = input.edges.filter((e) => e > low && e < high);
  const knots = [low, ...inside, high];
  const last = knots.length - 2;
  const round = (value: number) => (input.step ? Number((Math.round(value / input.step) * input.step).toPrecision(12)) : value);
  const toValue = (position: number) => {
    const bin = Math.min(Math.floor(position / STEPS), last);
    const [a, b] = [knots[bin], knots[bin + 1]];
    return Math.min(high, Math.max(low, round(a + ((b - a) * (position - bin * STEPS)) / STEPS)));
  };
  const toPosition = (value: number) => {
    const bin = Math.min(Math.max(knots.filter((k) => k < value).length - 1, 0), last);
    const share = (Math.min(high, Math.max(low, value)) - knots[bin]) / (knots[bin + 1] - knots[bin] || 1);
    return Math.round((bin + share) * STEPS);
  };
  const next = (value: number | null, position: number) => {
    const step = value === null ? 0 : position - toPosition(value);
    if (Math.abs(step) !== 1) return toValue(position);
    let at = position;
    while (toValue(at) === value && at > 0 && at < (last + 1) * STEPS) at += step;
    return toValue(at);
  };
  return { knots, toValue, toPosition, next };
}

/** The risk of the typical applicant along the slider, as a staircase that is as long as the slider. */
function Spark({ model, input, track }: { model: Model; input: Input; track: Track }) {
  const d = useMemo(() => {
    const n = track.knots.length - 1;
    const levels = track.knots.slice(1).map((b, i) => attempt(model, input.feature, (track.knots[i] + b) / 2));
    const known = levels.filter((r) => r !== null);
    if (n < 2 || !known.length) return "";
    const y = linear([Math.min(...known), Math.max(...known)], [17, 3]);
    const [low, high] = [Math.min(...known), Math.max(...known)];
    return levels
      .map((r, i) => {
        const at = high - low < 1e-9 ? 10 : y(r ?? low);
        return `${i ? "L" : "M"}${((i / n) * 1000).toFixed(1)} ${at.toFixed(1)}L${(((i + 1) / n) * 1000).toFixed(1)} ${at.toFixed(1)}`;
      })
      .join("");
  }, [model, input, track]);
  return (
    <svg class="spark" viewBox="0 0 1000 20" preserveAspectRatio="none" aria-hidden="true">
      <path d={d} />
    </svg>
  );
}

function attempt(model: Model, feature: string, value: Value): number | null {
  try {
    return risk(model, { ...model.typical, [feature]: value });
  } catch {
    return null;
  }
}

/** A number, or one of the codes that are none: special values and "missing". */
export function NumberInput({ input, value, onChange, id, whose = "" }: Props) {
  const code = value === null ? MISSING : input.special_values.includes(value as number) ? String(value) : "";
  const middle = () => trackOf(input).toValue((trackOf(input).knots.length - 1) * (STEPS / 2));
  return (
    <span class="number-input">
      <input
        id={id}
        type="number"
        step="any"
        inputMode="decimal"
        aria-label={`${input.label}${whose}`}
        placeholder={code === MISSING ? input.missing_name : ""}
        value={value === null ? "" : String(value)}
        onInput={(e) => {
          const { value: text, validity } = e.currentTarget;
          if (text !== "" && Number.isFinite(Number(text))) onChange(Number(text));
          else if (text === "" && !validity.badInput) onChange(null);
        }}
      />
      <select
        class="code"
        aria-label={`${input.label}${whose}: a value, a code or not given`}
        value={code}
        onChange={(e) => {
          const chosen = e.currentTarget.value;
          onChange(chosen === MISSING ? null : chosen === "" ? middle() : Number(chosen));
        }}
      >
        <option value="">{input.unit ?? "value"}</option>
        {input.special_values.map((v, i) => (
          <option key={v} value={String(v)}>
            {input.special_names[i]}
          </option>
        ))}
        <option value={MISSING}>{input.missing_name}</option>
      </select>
    </span>
  );
}

/** A feature whose numbers are codes, each with a meaning: it is asked for by these. */
export const isCoded = ({ range, step, labels }: Input): boolean =>
  range !== null && step === 1 && range[1] - range[0] < 100 && codesOf(range).every((code) => Object.hasOwn(labels, code));

/** The codes from the least to the greatest. */
const codesOf = ([low, high]: [number, number]) => Array.from({ length: high - low + 1 }, (_, k) => String(low + k));

function Slider({ input, value, onChange, id, model }: Props) {
  const track = useMemo(() => trackOf(input), [input]);
  const numeric = typeof value === "number" && !input.special_values.includes(value);
  return (
    <div class={`slider ${numeric ? "" : "off"}`}>
      {!input.protected && <Spark model={model} input={input} track={track} />}
      <input
        type="range"
        aria-label={`${input.label}, slider`}
        aria-valuetext={say(model, input.feature, value)}
        id={`${id}-slider`}
        min={0}
        max={(track.knots.length - 1) * STEPS}
        step={1}
        value={numeric ? track.toPosition(value as number) : 0}
        onInput={(e) => onChange(track.next(numeric ? (value as number) : null, Number(e.currentTarget.value)))}
      />
    </div>
  );
}

// ---- categories

export function CategoryInput({ model, input, value, onChange, id, whose = "" }: Props) {
  const text = value === null || value === "" ? MISSING : String(value);
  const coded = input.kind === "continuous";
  const codes = coded ? [...codesOf(input.range!), ...input.special_values.map(String)] : input.categories;
  const known = text === MISSING || codes.includes(text);
  const group = known ? null : groupOf(model, input.feature, text);
  return (
    <select
      id={id}
      aria-label={`${input.label}${whose}`}
      value={known ? text : UNSEEN}
      onChange={(e) => {
        const chosen = e.currentTarget.value;
        onChange(chosen === MISSING ? null : coded ? Number(chosen) : chosen);
      }}
    >
      {codes.map((code, i) => (
        <option key={code} value={code}>
          {coded ? say(model, input.feature, Number(code)) : input.category_names[i]}
        </option>
      ))}
      <option value={MISSING}>{input.missing_name}</option>
      {!known && (
        <option value={UNSEEN} disabled>
          {group === null ? say(model, input.feature, text) : `${say(model, input.feature, text)} (${say(model, input.feature, group)})`}
        </option>
      )}
    </select>
  );
}

export const ValueInput = (props: Props) =>
  props.input.kind === "categorical" || isCoded(props.input) ? <CategoryInput {...props} /> : <NumberInput {...props} />;

// ---- a feature of the applicant view

interface FeatureProps {
  model: Model;
  input: Input;
  value: Value;
  /** What the feature contributes now; null where it has no piece of its own. */
  piece: number | null;
  /** Whether the value is beyond the data the model was built on. */
  beyond: boolean;
  set: Store["set"];
}

export function FeatureControl({ model, input, value, piece, beyond, set }: FeatureProps) {
  const text = piece === null ? "" : points(piece);
  // The same element again is not compared again: while one feature is dragged, the others cost nothing.
  return useMemo(() => {
    const id = `a-${model.features.indexOf(input.feature)}`;
    const tone = piece === null || Math.abs(piece) < 0.0005 ? "" : piece > 0 ? "up" : "down";
    const onChange = (next: Value) => set("a", input.feature, next);
    return <Control model={model} tone={tone} text={text} beyond={beyond} {...{ input, value, onChange, id }} />;
  }, [model, input, value, text, beyond]);
}

function Control({ tone, text, beyond, ...props }: Props & { tone: string; text: string; beyond: boolean }) {
  const { input, id } = props;
  const number = input.kind === "continuous" && !isCoded(input);
  return (
    <div class={`feature ${number ? "" : "categorical"}`}>
      <div class="feature-head">
        <label for={id}>
          <Name text={input.label} />
        </label>
        {beyond && <span class="beyond">outside the data</span>}
        <span class={`piece ${tone}`}>{text}</span>
      </div>
      {number && <Slider {...props} />}
      <ValueInput {...props} />
    </div>
  );
}
