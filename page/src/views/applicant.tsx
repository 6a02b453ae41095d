import { batch, useSignal } from "@preact/signals";
import { Bar } from "../charts/bar";
import { Gauge } from "../charts/gauge";
import { Waterfall } from "../charts/waterfall";
import { beyond, formula, lastLink, parseRow, reasons, refused, type Row } from "../engine";
import { type Person, type Store, toAddress, useStore } from "../state";
import { FeatureControl } from "./controls";
import { cost, limit as limitText, percent, points } from "./format";
import { ModelChoice } from "./overview";
import { type Column, Table } from "./table";
import { bySubscale, forPeople, isProtected, leftOf, subscaleText, titleOf } from "./words";
import { useLater } from "./pause";
import { ReceiptSection } from "./receipt";
import { WhatIfSection } from "./whatif";

export function ApplicantView() {
  return (
    <>
      <h1 class="unseen">Applicant</h1>
      <ModelChoice />
      <div class="applicant">
        <div class="controls screen-only">
          <StartFrom person="a" />
          <Controls />
        </div>
        <div class="result">
          <Verdict />
          <Breakdown />
          <div class="two">
            <Reasons />
            <WhatIfSection />
          </div>
          <Share />
          <ReceiptSection />
          <Source />
        </div>
      </div>
    </>
  );
}

// ---- where to start

/** The typical applicant, an example of the data, or a pasted row. */
export function StartFrom({ person }: { person: Person }) {
  const store = useStore();
  const text = useSignal("");
  const problems = useSignal<string[]>([]);
  const notes = useSignal<string[]>([]);
  const { payload, rows, start } = store;
  const take = (row: Row) => {
    problems.value = notes.value = [];
    rows[person].value = { ...start, ...row };
  };
  const read = () => {
    const found = parseRow(store.model.value, text.value);
    batch(() => {
      problems.value = found.problems;
      notes.value = found.problems.length ? [] : ["The row was read.", ...found.notes];
      if (!found.problems.length) rows[person].value = { ...start, ...found.row };
    });
  };
  return (
    <section class="start" aria-label={person === "a" ? "Start from" : "Start the second applicant from"}>
      <div class="buttons">
        <button type="button" onClick={() => take(store.model.value.typical)}>
          Most frequent values
        </button>
        {payload.applicants.length > 0 && (
          <select
            aria-label="Start from an example"
            value=""
            onChange={(e) => {
              const example = payload.applicants[Number(e.currentTarget.value)];
              if (example) take(example.row);
              e.currentTarget.value = "";
            }}
          >
            <option value="">Example…</option>
            {payload.applicants.map((a, i) => (
              <option key={i} value={i}>
                {a.name}
              </option>
            ))}
          </select>
        )}
        {person === "b" && (
          <button type="button" onClick={() => take(rows.a.value)}>
            Same as A
          </button>
        )}
      </div>
      <details class="paste">
        <summary>Paste a row</summary>
        <label>
          <span>CSV with a header line, or JSON</span>
          <textarea
            rows={4}
            spellcheck={false}
            value={text.value}
            onInput={(e) => (text.value = e.currentTarget.value)}
          />
        </label>
        <button type="button" onClick={read}>
          Read the row
        </button>
        <div role="alert">
          {problems.value.length > 0 && (
            <ul class="problems">
              {problems.value.map((p) => (
                <li key={p}>{p}</li>
              ))}
            </ul>
          )}
        </div>
        <p class="hint" role="status">
          {notes.value.join(" ")}
        </p>
      </details>
    </section>
  );
}

// ---- features

function Controls() {
  const store = useStore();
  const model = store.model.value;
  const row = store.rows.a.value;
  const pieces = new Map<string, number>();
  for (const part of store.evaluated.value.explanation?.parts ?? []) {
    for (const term of part.terms) pieces.set(term.name, (pieces.get(term.name) ?? 0) + term.value);
  }
  const outside = beyond(model, row);
  const unused = [...leftOf(model)].map((name) => titleOf(model, name));
  return (
    <form onSubmit={(e) => e.preventDefault()} aria-label="Features">
      {bySubscale(model).map(([name, inputs]) => (
        <fieldset key={name} class="features">
          <legend>{name}</legend>
          {inputs.map((input) => (
            <FeatureControl
              key={input.feature}
              model={model}
              input={input}
              value={row[input.feature] ?? null}
              piece={input.protected ? null : (pieces.get(input.feature) ?? null)}
              beyond={outside.includes(input.feature)}
              set={store.set}
            />
          ))}
        </fieldset>
      ))}
      {unused.length > 0 && <p class="hint">{`Not used by this model: ${unused.join(", ")}.`}</p>}
    </form>
  );
}

// ---- the probability

/** What a cut-off says of a risk. */
export function decision(store: Store, risk: number): string {
  const [model, limit] = [store.model.value, store.limit.value];
  const said = refused(model, risk, limit) ? `refused (limit ${limitText(limit)})` : "approved";
  return model.info.ranking.cutoff === null ? `Would be ${said}` : said.replace(/^./, (first) => first.toUpperCase());
}

function Verdict() {
  const store = useStore();
  const { explanation, error } = store.evaluated.value;
  const { outcome } = store.payload;
  if (!explanation) {
    return (
      <section class="verdict" aria-label="Decision">
        <p class="notice" role="alert">
          {error}
        </p>
      </section>
    );
  }
  const { risk, referenceRisk } = explanation;
  const [model, limit] = [store.model.value, store.limit.value];
  const said = decision(store, risk);
  const outside = beyond(model, store.rows.a.value).map((name) => titleOf(model, name));
  return (
    <section class="verdict" aria-label="Decision">
      <p class="what">
        Probability that <span class="outcome">{outcome}</span>
      </p>
      <p class="probability">{percent(risk)}</p>
      <Gauge risk={risk} reference={referenceRisk} cutoff={limit} />
      <p class={`decision ${refused(model, risk, limit) ? "refused" : "accepted"}`}>
        <strong>{said}</strong>
        {model.info.ranking.cutoff === null && <Try />}
      </p>
      <p class="context">
        {`The typical applicant has ${percent(referenceRisk)}; this one differs by ${points(risk - referenceRisk)} points.`}
      </p>
      {outside.length > 0 && <p class="beyond">{`Outside the data that the model was built on: ${outside.join(", ")}`}</p>}
      <Spoken text={`Probability ${percent(risk)}. ${said}.`} />
    </section>
  );
}

/** A cut-off to try, where the model has none. */
function Try() {
  const { cutoff } = useStore();
  return (
    <label>
      <span>No cut-off is set. Try one:</span>
      <input
        id="cutoff"
        type="number"
        min={0}
        max={100}
        step={0.5}
        aria-label="Cut-off in percent"
        value={Number((cutoff.value * 100).toPrecision(10))}
        onInput={(e) => {
          const value = Number(e.currentTarget.value) / 100;
          if (e.currentTarget.value !== "" && value >= 0 && value <= 1) cutoff.value = value;
        }}
      />
      <span aria-hidden="true">%</span>
    </label>
  );
}

/** Says the risk to screen readers once it stands still, and nothing until then. */
function Spoken({ text }: { text: string }) {
  const said = useSignal("");
  useLater(() => (said.value = text), [text]);
  return (
    <p class="unseen" role="status" aria-live="polite">
      {said.value === text && text}
    </p>
  );
}

// ---- pieces

function Breakdown() {
  const store = useStore();
  const { explanation } = store.evaluated.value;
  if (!explanation) return null;
  return (
    <section aria-labelledby="breakdown">
      <h2 id="breakdown">From the typical applicant to this one</h2>
      <Waterfall
        explanation={forPeople(store.model.value, explanation, store.rows.a.value)}
        from="Typical applicant"
        to="This applicant"
      />
      <p class="hint notes">
        {explanation.reference === "typical" && "The typical applicant is the average of the applicants the model was built on. "}
        The points add up exactly.
      </p>
      <Terms />
    </section>
  );
}

/** The risk as a sum of terms, where it is one. */
function Terms() {
  const store = useStore();
  const model = store.model.value;
  const found = formula(model, store.rows.a.value);
  const risk = store.evaluated.value.explanation?.risk;
  if (!found || risk === undefined) return null;
  const pooled = found.terms.some((term) => term.own !== null);
  const lines = [{ name: "Start", own: null as number | null, value: found.start }];
  let guarded = 0;
  for (const { name, features, own, value } of found.terms) {
    if (features.length && isProtected(model, features)) guarded += value;
    else lines.push({ name: pooled ? subscaleText(model, name) : titleOf(model, name, features.length ? features : [name]), own, value });
  }
  if (guarded) lines.push({ name: "Protected attributes", own: null, value: guarded });
  if (pooled && found.start === 0) lines.shift();
  lines.push({ name: "Sum", own: null, value: found.total });
  const product = pooled ? (lastLink(model.form) ? "what it adds" : "weight × probability") : "coefficient × value";
  const columns: Column<(typeof lines)[number]>[] = [
    { head: pooled ? "subscale" : "feature", value: (l) => l.name },
    { head: product, value: (l) => l.value, as: (v) => percent(v, 2) },
  ];
  if (pooled) columns.splice(1, 0, { head: "probability by itself", value: (l) => l.own, as: (v) => (v == null ? "" : percent(v, 2)) });
  return (
    <details class="screen-only terms">
      <summary>{pooled ? "What each subscale predicts alone" : "As coefficients times values"}</summary>
      <Table caption="The probability as a sum of terms" rows={lines} columns={columns} />
      {Math.abs(found.total - risk) > 1e-9 && <p class="hint">{`The probability is limited to ${percent(risk, 0)}.`}</p>}
    </details>
  );
}

function Reasons() {
  const store = useStore();
  const { explanation } = store.evaluated.value;
  if (!explanation) return null;
  const model = store.model.value;
  const turnedDown = refused(model, explanation.risk, store.limit.value);
  return (
    <section class="reasons" aria-labelledby="reasons">
      <h2 id="reasons">{turnedDown ? "Main reasons" : "What counted most against the applicant"}</h2>
      {turnedDown ? (
        <Listed />
      ) : (
        <details>
          <summary>Show</summary>
          <Listed />
        </details>
      )}
    </section>
  );
}

function Listed() {
  const store = useStore();
  const model = store.model.value;
  const { ranking, references } = model.info;
  const { reasons: found, withheld } = reasons(model, store.rows.a.value);
  const largest = Math.max(...found.map((r) => r.cost), 1e-12);
  const best = ranking.reference === "best" && references.best !== null;
  const attributes = withheld === 1 ? "attribute also counted; it is" : "attributes also counted; they are";
  return (
    <>
      {found.length ? (
        // As high as all reasons that there may be, so that nothing below moves when there are fewer.
        <ol class={`most-${Math.min(ranking.k, 4)}`}>
          {found.map((r, i) => (
            <li key={r.feature}>
              {ranking.by_subscale && r.subscale !== found[i - 1]?.subscale && (
                <span class="group">{`${subscaleText(model, r.subscale)}, ${cost(r.subscaleCost)} together`}</span>
              )}
              <span>{r.text}</span>
              <span class="numeric">{cost(r.cost)}</span>
              <Bar class="accent" from={0} to={r.cost} domain={[0, largest]} />
            </li>
          ))}
        </ol>
      ) : (
        <p class="hint">{withheld ? "There is no reason that may be given." : "Nothing counts against this applicant."}</p>
      )}
      {found.length > 0 && (
        <p class="hint">{`How many points each one costs, compared with ${best ? "its best value" : "the typical applicant"}.`}</p>
      )}
      {withheld > 0 && <p class="hint">{`${withheld} protected ${attributes} never given as a reason.`}</p>}
    </>
  );
}

// ---- handing on

/** On paper: which model said this. */
function Source() {
  const store = useStore();
  const { info } = store.model.value;
  const date = new Date().toLocaleDateString(undefined, { dateStyle: "long" });
  return (
    <div class="paper-line">
      <p>
        {`Date: ${date}`} <span class="blank">Reference number:</span>
      </p>
      <p>{`Model: ${info.name}, hash ${info.form_sha256}, plainrisk ${store.payload.plainrisk}`}</p>
    </div>
  );
}

function Share() {
  const store = useStore();
  const copied = useSignal({ address: "", text: "" });
  const address = location.href.replace(/#.*|$/s, toAddress(store));
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(address);
      copied.value = { address, text: "Copied. The address holds the values of this applicant; open it with the same page." };
    } catch {
      copied.value = { address, text: address };
    }
  };
  return (
    <section class="share screen-only" aria-label="Hand on">
      <button type="button" onClick={copy}>
        Copy address
      </button>
      <button type="button" onClick={() => print()}>
        Print
      </button>
      <p class="hint" role="status">
        {copied.value.address === address && copied.value.text}
      </p>
    </section>
  );
}
