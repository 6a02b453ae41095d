import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { certify, type DataSummary, type ModelPayload, type Ranged } from "../engine";
import { useStore } from "../state";
import { count, decimals, difference, digits, number, percent, share } from "./format";
import { CALIBRATION, Mark, ModelChoice } from "./overview";
import { type Column, download, Table } from "./table";

export function ValidatorView() {
  const store = useStore();
  const { info } = store.model.value;
  return (
    <>
      <h1>For the validator</h1>
      <p class="lead">Every number behind this page, as tables that can be downloaded.</p>
      <ModelChoice />
      <Identity info={info} />
      <Checks info={info} />
      {info.data && <Measures data={info.data} />}
      {info.data?.drift && <Drift info={info} drift={info.data.drift} />}
      {info.data?.groups && <Groups info={info} groups={info.data.groups} />}
      <Shapes info={info} />
      <Fit info={info} />
      <SchemaSection info={info} />
    </>
  );
}

/** The column of features, by their names in the data. */
function featureColumn(info: ModelPayload): Column<{ feature: string; features?: readonly string[] }> {
  const guarded = new Set(info.inputs.filter((i) => i.protected).map((i) => i.feature));
  return {
    head: "feature",
    value: (row) => row.feature,
    text: ({ feature, features = [feature] }) => (
      <>
        {feature} {features.some((name) => guarded.has(name)) && <span class="tag">protected</span>}
      </>
    ),
  };
}

function Section({ id, title, children }: { id: string; title: string; children: ComponentChildren }) {
  return (
    <section aria-labelledby={id} class="wide">
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  );
}

function Identity({ info }: { info: ModelPayload }) {
  const store = useStore();
  const lines: [string, string][] = [
    ["Model", info.name],
    ["Hash of the form (SHA-256)", info.form_sha256],
    ["plainrisk", store.payload.plainrisk],
    ...Object.entries(info.about),
    ["Outcome", store.payload.outcome],
    ["A high probability is", store.payload.adverse === "positive" ? "bad for the applicant" : "good for the applicant"],
  ];
  const save = () => download("form.json", `${JSON.stringify(info.form, null, 1)}\n`, "application/json");
  return (
    <Section id="identity" title="Identity">
      <dl class="lines">
        {lines.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <button type="button" class="quiet screen-only" onClick={save}>
        Download the form as JSON
      </button>
    </Section>
  );
}

function Checks({ info }: { info: ModelPayload }) {
  const store = useStore();
  const { checks, notes, outside } = info.certificate;
  const model = store.model.value;
  const here = useMemo(() => new Map(certify(model).map((claim) => [claim.name, claim.holds])), [model]);
  return (
    <Section id="certificate" title="Certificate">
      <Table
        name="certificate"
        caption="Checks of the certificate"
        rows={checks}
        columns={[
          { head: "holds", value: (c) => c.holds, text: (c) => <Mark holds={c.holds} /> },
          { head: "check", value: (c) => c.name },
          { head: "in this page", value: (c) => (here.get(c.name) === c.holds ? "checked here" : "not so here") },
          { head: "evidence", value: (c) => c.detail },
        ]}
      />
      {outside.length > 0 && (
        <>
          <h3>Empty and special fields</h3>
          <p class="hint">
            By how many percentage points they can help the applicant at most, whatever the other features are.
          </p>
          <Table
            name="outside"
            caption="Empty and special fields"
            rows={outside}
            columns={[
              featureColumn(info),
              { head: "level", value: (o) => o.level },
              { head: "rule", value: (o) => o.rule.replace("_", " ") },
              { head: "rows", value: (o) => o.rows, as: count },
              { head: "better than the best level", value: (o) => o.below_risk, as: difference },
              { head: "better than the worst level", value: (o) => o.lowers_risk, as: difference },
            ]}
          />
        </>
      )}
      {notes.length > 0 && (
        <details>
          <summary>{`${count(notes.length)} notes`}</summary>
          <ul class="plain-list">
            {notes.map((n) => (
              <li key={n}>{n}</li>
            ))}
          </ul>
        </details>
      )}
    </Section>
  );
}

// ---- data

function Measures({ data }: { data: DataSummary }) {
  return (
    <>
      {data.metrics.length > 0 && (
      <Section id="metrics" title={`Measured on ${count(data.rows)} rows`}>
        <Table
          name="metrics"
          caption="Metrics with 95% intervals"
          rows={data.metrics}
          columns={[
            { head: "metric", value: (m) => m.label },
            { head: "value", value: (m) => m.value, as: decimals(4) },
            { head: "low", value: (m) => m.low, as: decimals(4) },
            { head: "high", value: (m) => m.high, as: decimals(4) },
          ]}
        />
      </Section>
      )}
      {data.calibration.length > 0 && (
        <Section id="calibration" title="Calibration">
          <Table name="calibration" caption="Predicted and observed risk" rows={data.calibration} columns={CALIBRATION} />
        </Section>
      )}
      {data.cutoffs.length > 0 && (
        <Section id="cutoffs" title="Cut-offs">
          <Table
            name="cutoffs"
            caption="Approval, bad rate and errors by cut-off"
            rows={data.cutoffs}
            columns={[
              { head: "cut-off", value: (c) => c.cutoff, as: share },
              { head: "approved", value: (c) => c.approved, as: count },
              { head: "approval rate", value: (c) => c.approval_rate, as: share },
              { head: "bad rate", value: (c) => c.bad_rate, as: share },
              { head: "bad rate, low", value: (c) => c.bad_rate_low, as: share },
              { head: "bad rate, high", value: (c) => c.bad_rate_high, as: share },
              { head: "bad refused", value: (c) => c.bad_refused, as: share },
              { head: "good refused", value: (c) => c.good_refused, as: share },
            ]}
          />
        </Section>
      )}
    </>
  );
}

function Drift({ info, drift }: { info: ModelPayload; drift: NonNullable<DataSummary["drift"]> }) {
  const { moderate, large } = drift;
  const shift = drift.unit === "probability" ? difference : decimals(3);
  return (
    <Section id="drift" title="Drift against the training rows">
      <p class="hint">{`PSI is the population stability index: from ${number(moderate)} a shift is moderate, from ${number(large)} it is large. The effect is what the shift does to the mean prediction.`}</p>
      <Table
        name="drift"
        caption="Shift by feature"
        rows={drift.features}
        columns={[
          featureColumn(info),
          { head: "PSI", value: (r) => r.psi, as: decimals(3) },
          { head: "shift", value: (r) => (r.psi >= large ? "large" : r.psi >= moderate ? "moderate" : "small") },
          { head: `effect, ${drift.unit === "probability" ? "points" : drift.unit}`, value: (r) => r.shift, as: shift },
        ]}
      />
    </Section>
  );
}

type Group = NonNullable<DataSummary["groups"]>["groups"][number];

const ranged = (head: string, value: (g: Group) => Ranged | null, as: (n: number | null | undefined) => string): Column<Group>[] => [
  { head, value: (g) => value(g)?.value, as, text: (g) => <Spread of={value(g)} as={as} limit={head === "impact ratio" ? 0.8 : 0} /> },
  { head: `${head}, low`, value: (g) => value(g)?.low, as, hidden: true },
  { head: `${head}, high`, value: (g) => value(g)?.high, as, hidden: true },
];

/** A figure above its interval, and whether it is below the limit of four fifths. */
function Spread({ of, as, limit }: { of: Ranged | null; as: (n: number | null | undefined) => string; limit: number }) {
  return (
    <>
      {as(of?.value)}
      {of?.low != null && <small>{`${as(of.low)} to ${as(of.high)}`}</small>}
      {of?.value != null && of.value < limit && <strong class="below">below 4/5</strong>}
    </>
  );
}

function Groups({ info, groups }: { info: ModelPayload; groups: NonNullable<DataSummary["groups"]> }) {
  const feature = info.inputs.find((i) => i.feature === groups.column);
  const name = (group: string) => feature?.labels[group] ?? group;
  return (
    <Section id="groups" title={`Groups by ${feature?.label ?? groups.column}`}>
      <p class="hint">{`Approved at a cut-off of ${percent(groups.cutoff)}; the impact ratio compares with “${name(groups.reference)}”. Opportunity is the approval rate among applicants with the good outcome. The figures of small groups are uncertain.`}</p>
      <div class="stacked">
        <Table
          name="groups"
          caption="Groups"
          rows={groups.groups}
          columns={[
            { head: "group", value: (g) => g.group, text: (g) => name(g.group) + (g.small ? " (small)" : "") },
            { head: "small", value: (g) => g.small, hidden: true },
            { head: "rows", value: (g) => g.rows, as: count },
            { head: "mean risk", value: (g) => g.mean_risk, as: share },
            ...ranged("base rate", (g) => g.base_rate, share),
            ...ranged("approved", (g) => g.approval, share),
            ...ranged("impact ratio", (g) => g.impact, decimals(2)),
            ...ranged("opportunity", (g) => g.opportunity, share),
            ...ranged("AUC", (g) => g.auc, decimals(3)),
          ]}
        />
      </div>
    </Section>
  );
}

// ---- the model

function Shapes({ info }: { info: ModelPayload }) {
  if (!info.shapes.length) return null;
  const rows = info.shapes.flatMap((t) => {
    const [, across] = t.size ?? [0, 0];
    const label = (i: number) =>
      t.size ? `${t.labels[Math.floor(i / across)]} × ${t.labels[t.size[0] + (i % across)]}` : t.labels[i];
    return t.rows.map((n, i) => ({ table: t, feature: t.feature, features: t.features, i, label: label(i), rows: n }));
  });
  type Line = (typeof rows)[number];
  const columns: Column<Line>[] = [
    { head: "part", value: (r) => r.table.part },
    featureColumn(info),
    { head: "level", value: (r) => r.label },
    { head: "rows", value: (r) => r.rows, as: count },
    { head: "rate", value: (r) => r.table.bad_rate[r.i], as: share },
    { head: "score", value: (r) => r.table.score[r.i], as: digits(5) },
    { head: "effect", value: (r) => r.table.effect?.[r.i], as: difference },
    { head: "effect, low", value: (r) => r.table.low?.[r.i], as: difference },
    { head: "effect, high", value: (r) => r.table.high?.[r.i], as: difference },
  ];
  const known = columns.slice(0, info.shapes.some((t) => t.low) ? 9 : 7);
  return (
    <Section id="levels" title="Levels">
      <p class="hint">{`${count(rows.length)} levels of ${count(info.shapes.length)} tables; effects in percentage points for the typical applicant.`}</p>
      <div class="tall">
        <Table name="levels" caption="All levels" rows={rows} columns={known} />
      </div>
    </Section>
  );
}

function Fit({ info }: { info: ModelPayload }) {
  const { fit } = info;
  if (!fit) return null;
  // Trees have no solver that could say anything.
  const solver = !fit.kkt.length
    ? []
    : [
        ["converged", fit.converged],
        ["stopped because", fit.reason],
        ["objective", fit.objective.join(", ")],
        ["KKT residual", fit.kkt.join(", ")],
        ["iterations", fit.iterations.join(", ")],
      ];
  const lines = [
    ["estimator", fit.estimator],
    ...Object.entries(fit.parameters),
    ["rows", fit.rows],
    ["weight", fit.weight],
    ["weight of the positive outcome", fit.positive_weight],
    ["base rate", fit.base_rate],
    ...solver,
    ["share of training rows clipped", fit.clipped],
    ["features not used", fit.features_left.join(", ") || "none"],
  ].map(([name, value]) => ({ name: String(name), value }));
  return (
    <>
      <Section id="fit" title="Fit">
        <Table
          name="fit"
          caption="Fit record"
          rows={lines}
          columns={[
            { head: "what", value: (l) => l.name },
            { head: "value", value: (l) => l.value, text: (l) => (typeof l.value === "number" ? number(l.value) : String(l.value)) },
          ]}
        />
      </Section>
      {fit.evidence.length > 0 && (
        <Section id="evidence" title="Evidence for smooth shapes">
          <Table
            name="evidence"
            caption="Groups of coefficients that were shrunk together"
            rows={fit.evidence}
            columns={[
              { head: "feature", value: (g) => g.features.join(" × ") },
              { head: "coefficients", value: (g) => g.kind },
              { head: "number", value: (g) => g.size, as: count },
              { head: "precision", value: (g) => g.precision, as: digits(4) },
              { head: "degrees of freedom", value: (g) => g.edf, as: decimals(2) },
              { head: "not used", value: (g) => g.left, text: (g) => (g.left ? "not used" : "") },
            ]}
          />
        </Section>
      )}
    </>
  );
}

/** A field of the schema as one text. */
function fieldText(value: unknown): string {
  if (value == null) return "";
  if (Array.isArray(value)) return value.map(fieldText).join(", ");
  if (typeof value !== "object") return String(value);
  return Object.entries(value).map(([name, inner]) => `${name}: ${fieldText(inner)}`).join("; ");
}

/** Every field that some feature has, whatever a later version adds. */
function SchemaSection({ info }: { info: ModelPayload }) {
  const { features = {}, subscales = {} } = info.form.schema;
  const fields = new Set(["kind", "direction", ...Object.values(features).flatMap((f) => Object.keys(f))]);
  const usual: Record<string, string> = { kind: "continuous", direction: "none" };
  const of = (name: string, field: string) => fieldText((features[name] as Record<string, unknown>)[field] ?? usual[field]);
  const columns: Column<string>[] = [
    { head: "feature", value: (name) => name },
    { head: "subscale", value: (name) => info.order.subscales.filter((s) => subscales[s].includes(name)).join(", ") },
    ...[...fields].map((field) => ({ head: field.replaceAll("_", " "), value: (name: string) => of(name, field) })),
  ];
  return (
    <Section id="schema" title="Schema">
      <Table name="schema" caption="What is known of the features" rows={info.order.features} columns={columns} />
    </Section>
  );
}
