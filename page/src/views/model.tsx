import { type Column as Level, Columns } from "../charts/columns";
import { Heat } from "../charts/heat";
import { extent } from "../charts/scale";
import type { Importance, Model, ShapeTable } from "../engine";
import { SORTS, useStore } from "../state";
import { isCoded } from "./controls";
import { count, difference, digits, number, points, share } from "./format";
import { Title } from "./name";
import { ModelChoice, plural } from "./overview";
import { type Column, Table } from "./table";
import { bySubscale, DIRECTIONS, edgeTexts, leftOf, shapeOf, subscaleText, titleOf, vocabulary } from "./words";

const SORT_WORDS = { subscale: "by subscale", importance: "by importance", name: "by name" };

export function ModelView() {
  const store = useStore();
  const model = store.model.value;
  const found = useShapes();
  const left = [...leftOf(model)];
  const { chance, kind } = vocabulary(store.payload);
  const trees = model.form.parts.filter((p) => p.kind === "trees");
  return (
    <>
      <h1>Every effect in the model</h1>
      <p class="lead" hidden={!model.info.shapes.length}>
        {`What each level does to the ${chance} of the typical applicant, in percentage points, above how many training rows had it; the lower part of a bar had the ${kind} outcome. Codes and empty fields are shown separately.`}
      </p>
      <ModelChoice />
      <form class="tools screen-only" role="search" hidden={!model.info.shapes.length} onSubmit={(e) => e.preventDefault()}>
        <label>
          Search
          <input
            type="search"
            value={store.query.value}
            placeholder="feature, subscale or level"
            onInput={(e) => (store.query.value = e.currentTarget.value)}
          />
        </label>
        <label>
          Sort
          <select
            value={store.sort.value}
            onChange={(e) => (store.sort.value = e.currentTarget.value as (typeof SORTS)[number])}
          >
            {SORTS.map((s) => (
              <option key={s} value={s}>
                {SORT_WORDS[s]}
              </option>
            ))}
          </select>
        </label>
        <p class="found" role="status">{`${plural(found.length, "table")} shown`}</p>
      </form>
      {trees.length > 0 && (
        <p class="notice">
          {`A sum of trees, exact as a whole, without a table per feature: ${trees.map((p) => p.name).join(", ")}.`}
        </p>
      )}
      <div class="cards">
        {found.map((t) => (
          <Card key={`${t.part} ${t.feature}`} model={model} table={t} />
        ))}
      </div>
      {left.length > 0 && <p class="hint">{`Not used: ${left.map((name) => titleOf(model, name)).join(", ")}.`}</p>}
    </>
  );
}

function importanceOf(model: Model, table: ShapeTable): Importance | undefined {
  const named = model.info.importance.filter((i) => i.feature === table.feature);
  return named.find((i) => i.subscale === table.subscale || i.subscale === table.part) ?? named[0];
}

/** The tables that are searched for, in the order that is asked for. */
function useShapes(): ShapeTable[] {
  const store = useStore();
  const model = store.model.value;
  const words = store.query.value.toLowerCase().split(/\s+/).filter(Boolean);
  const title = (t: ShapeTable) => titleOf(model, t.feature, t.features);
  const matches = (t: ShapeTable) => {
    const text = [title(t), t.feature, t.subscale, t.part, ...t.names].join("\n").toLowerCase();
    return words.every((w) => text.includes(w));
  };
  const left = leftOf(model);
  const found = model.info.shapes.filter((t) => !left.has(t.feature) && matches(t));
  const order = bySubscale(model).map(([name]) => name);
  const place = (t: ShapeTable) => order.indexOf(subscaleText(model, t.subscale));
  const weight = (t: ShapeTable) => importanceOf(model, t)?.mean ?? -1;
  if (store.sort.value === "subscale") found.sort((a, b) => place(a) - place(b));
  if (store.sort.value === "importance") found.sort((a, b) => weight(b) - weight(a));
  if (store.sort.value === "name") found.sort((a, b) => title(a).localeCompare(title(b)));
  return found;
}

function Card({ model, table }: { model: Model; table: ShapeTable }) {
  const single = table.features.length === 1;
  const direction = single ? DIRECTIONS[model.schema.features?.[table.feature]?.direction ?? "none"] : undefined;
  const important = importanceOf(model, table);
  return (
    <article class="card">
      <header>
        <p class="eyebrow">
          {subscaleText(model, table.subscale)}
          {model.info.weights[table.part] !== undefined && `, weight ${number(model.info.weights[table.part], 3)}`}
        </p>
        <h2>
          <Title model={model} name={table.feature} features={table.features} />
        </h2>
        {direction?.mark && (
          <span class="tag" title={direction.text}>
            {direction.mark} {direction === DIRECTIONS.increasing ? "rises" : "falls"}
          </span>
        )}
        {!single && <span class="tag">pair</span>}
        {important?.mean != null && important.unit === "probability" && (
          <span class="aside">{`${points(important.mean).replace("+", "")} points on average`}</span>
        )}
      </header>
      {table.kind === "pair" ? <PairCard model={model} table={table} /> : <ShapeCard model={model} table={table} />}
    </article>
  );
}

interface Line {
  label: string;
  rows: number;
  bad: number;
  rate: number | null;
  score: number | null;
  effect: number | null;
  low: number | null;
  high: number | null;
  step: string[] | null;
}

function linesOf(table: ShapeTable, names: readonly string[]): Line[] {
  return names.map((label, i) => ({
    label,
    rows: table.rows[i],
    bad: table.bad[i],
    rate: table.bad_rate[i],
    score: table.score[i],
    effect: table.effect?.[i] ?? null,
    low: table.low?.[i] ?? null,
    high: table.high?.[i] ?? null,
    step: table.steps?.[i] ?? null,
  }));
}

function columnsOf(lines: readonly Line[], table: ShapeTable): Column<Line>[] {
  const effect = table.effect !== null;
  const columns: Column<Line>[] = [
    { head: "level", value: (l) => l.label },
    { head: "rows", value: (l) => l.rows, as: count },
    { head: "rate", value: (l) => l.rate, as: share },
    { head: "score", value: (l) => l.score, as: digits(4) },
  ];
  if (effect) columns.push({ head: "effect, points", value: (l) => l.effect, as: difference });
  if (lines.some((l) => l.low !== null)) {
    columns.push({ head: "95% low", value: (l) => l.low, as: difference });
    columns.push({ head: "95% high", value: (l) => l.high, as: difference });
  }
  if (!table.bands.length && lines.some((l) => l.step !== null)) {
    columns.push({ head: `${against(table)}, points`, value: (l) => stepText(l, 0) });
  }
  return columns;
}

const against = (table: ShapeTable) =>
  table.kind === "pair" ? "added" : table.ordered ? "against the one before" : "against the most frequent";

const stepText = (line: Line, band: number) => line.step?.[band].replace(/-(?=\d)/g, "−") ?? null;

/** What a step adds in each band, in a table of its own: with all columns in one it would be too wide. */
function Steps({ lines, table }: { lines: readonly Line[]; table: ShapeTable }) {
  const moved = lines.filter((l) => l.step !== null);
  if (!table.bands.length || !moved.length) return null;
  const columns: Column<Line>[] = [
    { head: "level", value: (l) => l.label },
    ...table.bands.map((band, b): Column<Line> => ({ head: band, value: (l) => stepText(l, b) })),
  ];
  return <Table caption={`Points ${against(table)}, by the probability`} quiet={false} rows={moved} columns={columns} />;
}

function Details({ table, names }: { table: ShapeTable; names: readonly string[] }) {
  const lines = linesOf(table, names);
  return (
    <details class="screen-only">
      <summary>Table</summary>
      <Table caption={`Levels of ${table.feature}`} rows={lines} columns={columnsOf(lines, table)} />
      <Steps lines={lines} table={table} />
    </details>
  );
}

function ShapeCard({ model, table }: { model: Model; table: ShapeTable }) {
  const shape = shapeOf(model, table.part, table.feature);
  const { names } = table;
  const levels: Level[] = linesOf(table, names).map((l, i) => ({
    label: l.label,
    effect: l.effect,
    low: l.low ?? undefined,
    high: l.high ?? undefined,
    rows: l.rows,
    bad: l.bad,
    outside: i >= table.n_ordered,
  }));
  // A special level that no row had has nothing to show.
  const shown = levels.filter((l) => !l.outside || l.rows > 0);
  const run = table.curve;
  const [first, last] = run?.length ? [run[0].value, run[run.length - 1].value] : [0, 1];
  const curve = run?.map((p) => [((p.value - first) / (last - first || 1)) * table.n_ordered, p.effect] as const);
  const coded = model.info.inputs.some((i) => i.feature === table.feature && isCoded(i));
  const edges = shape?.levels.kind === "bins" && !curve && !coded ? edgeTexts(shape.levels.edges) : undefined;
  const label = `Effect of ${titleOf(model, table.feature)} by level; the table below has the numbers`;
  return (
    <>
      {table.effect || curve ? (
        <Columns columns={shown} edges={edges} curve={curve} label={label} ends={curve && [number(first, 4), number(last, 4)]} />
      ) : (
        <p class="hint">The form does not know the typical applicant; give data to see effects in probability.</p>
      )}
      {table.sentence && <p class="sentence">{`${table.sentence}.`}</p>}
      <Details table={table} names={names} />
    </>
  );
}

function PairCard({ model, table }: { model: Model; table: ShapeTable }) {
  const [down, across] = [table.names.slice(0, table.size![0]), table.names.slice(table.size![0])];
  const names = down.flatMap((u) => across.map((v) => `${u} × ${v}`));
  // Levels that no row had are left out of the picture; the table has them.
  const has = (i: number, j: number) => table.rows[i * across.length + j] > 0;
  const rows = down.map((_, i) => i).filter((i) => across.some((_, j) => has(i, j)));
  const columns = across.map((_, j) => j).filter((j) => down.some((_, i) => has(i, j)));
  const pick = <T,>(from: readonly T[]) => rows.flatMap((i) => columns.map((j) => from[i * across.length + j]));
  const [low, high] = extent(pick(table.effect ?? table.score));
  const [first, second] = table.features.map((feature) => titleOf(model, feature));
  return (
    <>
      <p class="hint">
        {`${first} down, ${second} across. Color: effect, ${points(low)} to ${points(high)} points; size: training rows.`}
      </p>
      <Heat
        down={rows.map((i) => down[i])}
        across={columns.map((j) => across[j])}
        effects={pick(table.effect ?? table.score)}
        rows={pick(table.rows)}
        label={`Effect of ${table.feature}; the table below has the numbers`}
      />
      <Details table={table} names={names} />
    </>
  );
}
