import type { ComponentChildren } from "preact";
import { Bar } from "../charts/bar";
import { Histogram } from "../charts/histogram";
import { Lines } from "../charts/lines";
import { Reliability } from "../charts/reliability";
import { Widths } from "../charts/waterfall";
import type { CalibrationBin, DataSummary, Model, ModelPayload } from "../engine";
import { useStore } from "../state";
import { between, count, fixed, percent, points, share } from "./format";
import { Name, Title } from "./name";
import { type Column, Table } from "./table";
import { subscaleText, titleOf, vocabulary } from "./words";

export function OverviewView() {
  const store = useStore();
  const { payload } = store;
  const model = store.model.value;
  const { info } = model;
  return (
    <>
      <h1>
        Probability that <span class="outcome">{payload.outcome}</span>
      </h1>
      <p class="lead">{sentence(model)}</p>
      <ModelChoice />
      <About info={info} />
      <Facts info={info} />
      {info.data && <Measured data={info.data} />}
      <div class="two">
        <Certificate info={info} />
        <ImportanceSection model={model} />
        <Weights model={model} />
        <Caveats model={model} applicants={payload.applicants.length} />
      </div>
    </>
  );
}

/** Which of two models the page speaks of. */
export function ModelChoice() {
  const store = useStore();
  if (store.models.length < 2) return null;
  return (
    <fieldset class="choice screen-only">
      <legend class="unseen">Model</legend>
      {store.models.map((m, i) => (
        <label key={i}>
          <input type="radio" name="model" checked={store.which.value === i} onChange={() => (store.which.value = i)} />
          {m.info.name}
        </label>
      ))}
    </fieldset>
  );
}

function sentence(model: Model): string {
  const { form, info } = model;
  const pairs = form.parts.reduce((n, p) => n + (p.kind === "additive" ? (p.pairs?.length ?? 0) : 0), 0);
  const what = `${plural(model.features.length, "feature")}${pairs ? ` and ${plural(pairs, "pair")} of features` : ""}`;
  const groups = Object.keys(form.schema.subscales ?? {}).length;
  const inside = groups ? `, in ${plural(groups, "subscale")},` : "";
  const calibrated = form.pool.kind === "mixture" && form.pool.link ? ", calibrated" : "";
  const pool = {
    alone: "whose effects add up to one score, which gives the probability",
    mixture: `judged by one expert per subscale; the prediction is the weighted mean of theirs${calibrated}`,
    layer: "judged by one model per subscale; a second layer adds up their predictions",
  }[form.pool.kind];
  const trees = form.parts.some((p) => p.kind === "trees") ? " Subscales are sums of trees, exact as a whole." : "";
  return `${info.name}: ${what}${inside} ${pool}.${trees}`;
}

export const plural = (n: number, word: string) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

/** What the model file says about the model, such as its owner. */
function About({ info }: { info: ModelPayload }) {
  const texts = Object.entries(info.about);
  if (!texts.length) return null;
  return (
    <dl class="lines about">
      {texts.map(([name, text]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}

function Facts({ info }: { info: ModelPayload }) {
  const { chance, kind } = vocabulary(useStore().payload);
  const Kind = kind === "bad" ? "Bad" : "Good";
  const facts: [string, ComponentChildren, ComponentChildren][] = [];
  const auc = info.data?.metrics.find((m) => m.name === "auc");
  if (auc) {
    const range = auc.low !== null && auc.high !== null ? between(fixed(auc.low), fixed(auc.high)) : "";
    facts.push(["AUC", fixed(auc.value), range && `95% interval ${range}`]);
  }
  if (info.data) facts.push(["Rows measured", count(info.data.rows), ""]);
  if (info.fit) {
    facts.push(["Training rows", count(info.fit.rows), ""]);
    facts.push([`${Kind} rate in training`, percent(info.fit.base_rate), ""]);
  }
  if (info.data && info.data.bad !== null) {
    const rate = info.data.bad / info.data.rows;
    facts.push([`${Kind} rate measured`, percent(rate), `mean ${chance} ${percent(info.data.mean_risk)}`]);
  }
  return (
    <dl class="facts">
      {facts.map(([name, value, note]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class="value">{value}</dd>
          <dd class="note">{note || "\u00a0"}</dd>
        </div>
      ))}
    </dl>
  );
}

type Check = ModelPayload["certificate"]["checks"][number];

function Certificate({ info }: { info: ModelPayload }) {
  const { certificate } = info;
  // Broken checks first: they are what a reader must see.
  const checks = [...certificate.checks].sort((a, b) => Number(a.holds) - Number(b.holds));
  const held = certificate.checks.filter((c) => c.holds).length;
  return (
    <section aria-labelledby="certificate">
      <h2 id="certificate">What is proved</h2>
      <p class={`badge ${certificate.valid ? "good" : "bad"}`}>
        <Mark holds={certificate.valid} />
        {certificate.valid ? "Certificate valid" : "Certificate broken"}
        <span>{`${count(held)} of ${plural(certificate.checks.length, "check")} hold`}</span>
      </p>
      <Long class="checks" items={checks.map(proof)} />
    </section>
  );
}

const proof = (c: Check) => (
  <>
    <Mark holds={c.holds} />
    <span>
      <strong>{c.name}</strong>
      <span class="detail">{c.detail}</span>
    </span>
  </>
);

export function Mark({ holds }: { holds: boolean }) {
  return (
    <svg class={`mark ${holds ? "good" : "bad"}`} viewBox="0 0 16 16" role="img" aria-label={holds ? "holds" : "broken"}>
      {holds ? <path d="M3 8.5l3.2 3.2L13 4.8" /> : <path d="M4 4l8 8M12 4l-8 8" />}
    </svg>
  );
}

function Caveats({ model, applicants }: { model: Model; applicants: number }) {
  const { info } = model;
  const { fit, certificate } = info;
  const { chance } = vocabulary(useStore().payload);
  const said: string[] = [];
  if (fit && !fit.converged) said.push(`The fit stopped early: ${fit.reason}.`);
  if (fit) {
    said.push(
      fit.clipped > 0
        ? `The ${chance} of ${percent(fit.clipped)} of the training rows is clipped.`
        : `No training row has a clipped ${chance}.`,
    );
    const unused = fit.features_left.map((name) => titleOf(model, name));
    if (unused.length) said.push(`Not used: ${unused.join(", ")}.`);
  }
  const winners = certificate.outside.filter((o) => o.below_risk >= 0.0005).sort((a, b) => b.below_risk - a.below_risk);
  if (winners.length) {
    const [first] = winners;
    const more = winners.length > 1 ? ` The validator view has ${plural(winners.length - 1, "more case")}.` : "";
    const gain = points(first.below_risk).replace("+", "");
    said.push(`An empty field or a code can be better than every measured value: ${titleOf(model, first.feature)}, ${first.level}, by up to ${gain} points.${more}`);
  }
  said.push(...(info.data?.notes ?? []), ...certificate.notes);
  if (applicants) said.push(`This page holds ${plural(applicants, "row")} of the data as examples.`);
  if (info.data && info.data.bad === null) said.push("The data have no outcomes, so nothing is measured against them.");
  if (!info.data) said.push("No data were given for this page: it has the counts of the training rows, and no AUC.");
  return (
    <section aria-labelledby="caveats">
      <h2 id="caveats">Keep in mind</h2>
      <Long class="plain-list" items={said} />
    </section>
  );
}

const FIRST = 6;

/** A list of which only the beginning is open. */
function Long({ items, class: name }: { items: readonly ComponentChildren[]; class: string }) {
  const list = (some: readonly ComponentChildren[]) => (
    <ul class={name}>
      {some.map((item, i) => (
        <li key={i}>{item}</li>
      ))}
    </ul>
  );
  if (items.length <= FIRST + 1) return list(items);
  return (
    <>
      {list(items.slice(0, FIRST))}
      <details>
        <summary>{`${count(items.length - FIRST)} more`}</summary>
        {list(items.slice(FIRST))}
      </details>
    </>
  );
}

export const CALIBRATION: Column<CalibrationBin>[] = [
  { head: "rows", value: (b) => b.rows, as: count },
  { head: "predicted", value: (b) => b.predicted, as: share },
  { head: "observed", value: (b) => b.observed, as: share },
  { head: "observed, low", value: (b) => b.observed_low, as: share },
  { head: "observed, high", value: (b) => b.observed_high, as: share },
];

function Measured({ data }: { data: DataSummary }) {
  const { chance, kind } = vocabulary(useStore().payload);
  return (
    <>
      <div class="two">
        {data.calibration.length > 0 && (
          <section aria-labelledby="reliability">
            <h2 id="reliability">Predicted and observed</h2>
            <p class="hint">Each point is a group of rows with similar predictions, with its 95% interval. On the dashed line the two agree.</p>
            <Reliability
              points={data.calibration.map((b) => ({ ...b, low: b.observed_low, high: b.observed_high }))}
            />
            <details>
              <summary>Table</summary>
              <Table caption="Predicted and observed risk" rows={data.calibration} columns={CALIBRATION} />
            </details>
          </section>
        )}
        <section aria-labelledby="distribution">
          <h2 id="distribution">{`Distribution of the ${chance}`}</h2>
          <p class="hint">{data.histogram.bad ? `The lower part of a bar had the ${kind} outcome.` : "Rows by prediction."}</p>
          <Histogram
            ends={data.histogram.edges}
            rows={data.histogram.rows}
            bad={data.histogram.bad ?? []}
            label={`Rows by predicted ${chance}`}
          />
          {data.cutoffs.length > 1 && <Cutoffs data={data} />}
        </section>
      </div>
    </>
  );
}

function Cutoffs({ data }: { data: DataSummary }) {
  const known = data.cutoffs.filter((c) => c.bad_rate !== null);
  return (
    <>
      <h3>Cut-off</h3>
      <Lines
        label="Approval rate and bad rate among the approved, by cut-off; the validator view has the table"
        across="Cut-off"
        runs={[
          { name: "approved", class: "first", points: data.cutoffs.map((c) => [c.cutoff, c.approval_rate] as const) },
          { name: "bad among the approved", class: "second", points: known.map((c) => [c.cutoff, c.bad_rate!] as const) },
        ]}
      />
    </>
  );
}

function ImportanceSection({ model }: { model: Model }) {
  const { info } = model;
  const known = info.importance.filter((i) => i.mean !== null);
  const pairs = new Map(info.shapes.map((t) => [t.feature, t.features]));
  const most = Math.max(...known.map((i) => i.mean!), 1e-12);
  const digits = known[0]?.unit === "probability" ? points : (v: number | null) => fixed(v, 2);
  const unit = known[0]?.unit === "probability" ? "percentage points" : (known[0]?.unit ?? "");
  const bars = (some: typeof known) => (
    <table class="bars">
      <caption class="unseen">{`Importance: mean absolute contribution, in ${unit}`}</caption>
      <Widths />
      <tbody>
        {some.map((i) => (
          <tr key={`${i.subscale} ${i.feature}`}>
            <th scope="row">
              {i.feature === null ? (
                <Name text={subscaleText(model, i.subscale)} />
              ) : (
                <Title model={model} name={i.feature} features={pairs.get(i.feature)} />
              )}
            </th>
            <td class="bar-cell">
              <Bar class="accent" from={0} to={i.mean!} domain={[0, most]} />
            </td>
            <td class="numeric">{digits(i.mean).replace("+", "")}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
  return (
    <section aria-labelledby="importance">
      <h2 id="importance">What matters most</h2>
      {known.length ? (
        <p class="hint">{`Mean absolute contribution, in ${unit}.`}</p>
      ) : (
        <p class="hint">Lines, curves and trees need rows for this: give data when the page is made.</p>
      )}
      {bars(known.slice(0, 12))}
      {known.length > 12 && (
        <details>
          <summary>{`${count(known.length - 12)} more`}</summary>
          {bars(known.slice(12))}
        </details>
      )}
    </section>
  );
}

function Weights({ model }: { model: Model }) {
  const { info } = model;
  const weights = Object.entries(info.weights);
  const totals = new Map<string, number>();
  for (const i of info.importance) if (i.mean) totals.set(i.subscale, (totals.get(i.subscale) ?? 0) + i.mean);
  const whole = [...totals.values()].reduce((a, b) => a + b, 0);
  const rows = weights.length ? weights : [...totals].map(([name, sum]): [string, number] => [name, sum / whole]);
  if (rows.length < 2) return null;
  const most = Math.max(...rows.map((r) => Math.abs(r[1])), 1e-12);
  return (
    <section aria-labelledby="weights">
      <h2 id="weights">Subscales</h2>
      <p class="hint">
        {weights.length ? "The weight of each subscale in the prediction." : "The share of each subscale in all contributions."}
      </p>
      <table class="bars">
        <caption class="unseen">Subscales</caption>
        <Widths />
        <tbody>
          {rows
            .sort((a, b) => b[1] - a[1])
            .map(([name, weight]) => (
              <tr key={name}>
                <th scope="row">
                  <Name text={subscaleText(model, name)} />
                </th>
                <td class="bar-cell">
                  <Bar class="accent" from={0} to={weight} domain={[Math.min(0, ...rows.map((r) => r[1])), most]} />
                </td>
                <td class="numeric">{info.form.pool.kind === "layer" ? fixed(weight, 2) : percent(weight)}</td>
              </tr>
            ))}
        </tbody>
      </table>
    </section>
  );
}
