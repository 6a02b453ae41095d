import { batch, useSignal } from "@preact/signals";
import { Bar } from "../charts/bar";
import { Gauge } from "../charts/gauge";
import { Waterfall } from "../charts/waterfall";
import { type Explanation, parseRow, reasons, type Row } from "../engine";
import { type Person, useStore } from "../state";
import { FeatureControl } from "./controls";
import { percent, points } from "./format";
import { ModelChoice } from "./overview";
import { bySubscale, importanceRank, leftOf, subscaleText, vocabulary } from "./words";
import { useLater } from "./pause";
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
  const unused = [...leftOf(model)];
  return (
    <form onSubmit={(e) => e.preventDefault()} aria-label="Features">
      {bySubscale(model.info.inputs).map(([name, inputs]) => (
        <fieldset key={name} class="features">
          <legend>{subscaleText(name)}</legend>
          {inputs.map((input) => (
            <FeatureControl
              key={input.feature}
              model={model}
              input={input}
              value={row[input.feature] ?? null}
              piece={pieces.get(input.feature) ?? null}
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

function Verdict() {
  const store = useStore();
  const { explanation, error } = store.evaluated.value;
  const cutoff = store.cutoff.value;
  const { adverse, outcome } = store.payload;
  if (!explanation) {
    return (
      <section class="verdict" aria-label="Risk">
        <p class="notice" role="alert">
          {error}
        </p>
      </section>
    );
  }
  const { Chance } = vocabulary(store.payload);
  const { risk, referenceRisk } = explanation;
  const accepted = adverse === "positive" ? risk < cutoff : risk >= cutoff;
  const side = risk >= cutoff ? "At or above" : "Below";
  return (
    <section class="verdict" aria-label="Risk">
      <p class="what">
        {Chance} of <span class="outcome">{outcome}</span>
      </p>
      <p class="probability">{percent(risk)}</p>
      <Gauge risk={risk} reference={referenceRisk} cutoff={cutoff} />
      <p class={`decision ${accepted ? "accepted" : "refused"}`}>
        <strong>{`${side} the cut-off`}</strong>
        <label>
          <span class="unseen">Cut-off in percent</span>
          <input
            id="cutoff"
            type="number"
            min={0}
            max={100}
            step={0.5}
            value={Number((cutoff * 100).toPrecision(10))}
            onInput={(e) => {
              const value = Number(e.currentTarget.value) / 100;
              if (e.currentTarget.value !== "" && value >= 0 && value <= 1) store.cutoff.value = value;
            }}
          />
          <span aria-hidden="true">%</span>
        </label>
      </p>
      <p class="context">
        {`The typical applicant has ${percent(referenceRisk)}; this one differs by ${points(risk - referenceRisk)} percentage points.`}
      </p>
      <Spoken risk={risk} text={`${Chance} ${percent(risk)}. ${side} the cut-off of ${percent(cutoff)}.`} />
    </section>
  );
}

/** Says the risk to screen readers once it stands still. */
function Spoken({ risk, text }: { risk: number; text: string }) {
  const said = useSignal("");
  useLater(() => (said.value = text), [risk, text]);
  return (
    <p class="unseen" role="status" aria-live="polite">
      {said.value}
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
        explanation={explanation}
        from="Typical applicant"
        to="This applicant"
        rank={importanceRank(store.model.value)}
        left={leftOf(store.model.value)}
      />
      <Notes explanation={explanation} />
    </section>
  );
}

export function Notes({ explanation }: { explanation: Explanation }) {
  const typical = "The typical applicant has the mean effect of every feature over the training rows.";
  const said = [explanation.reference === "typical" ? typical : "", "The pieces add up exactly.", ...explanation.notes];
  return <p class="hint notes">{said.filter(Boolean).join(" ")}</p>;
}

const MOST = 4;

function Reasons() {
  const store = useStore();
  const { explanation, error } = store.evaluated.value;
  const found = error ? [] : reasons(store.model.value, store.rows.a.value).reasons;
  const largest = Math.max(...found.map((r) => r.cost), 1e-12);
  // As high as all reasons that there may be, so that nothing below moves when there are fewer.
  const most = Math.min(MOST, explanation?.parts.reduce((n, p) => n + Math.max(p.terms.length, 1), 0) ?? MOST);
  return (
    <section class="reasons" aria-labelledby="reasons">
      <h2 id="reasons">Main reasons</h2>
      {found.length ? (
        <ol class={`most-${most}`}>
          {found.map((r) => (
            <li key={`${r.subscale} ${r.feature}`}>
              <span>{r.text}</span>
              <span class="numeric">{points(store.payload.adverse === "positive" ? r.cost : -r.cost)}</span>
              <Bar class="accent" from={0} to={r.cost} domain={[0, largest]} />
            </li>
          ))}
        </ol>
      ) : (
        <p class="hint">Nothing counts against this applicant.</p>
      )}
      <p class="hint">Compared with the best level of every feature, in percentage points; the subscale that costs most comes first.</p>
    </section>
  );
}

// ---- handing on

/** On paper: which model said this. */
function Source() {
  const store = useStore();
  const { info } = store.model.value;
  return <p class="paper-line">{`${info.name}, form ${info.form_sha256}, plainrisk ${store.payload.plainrisk}`}</p>;
}

function Share() {
  const copied = useSignal("");
  const copy = async () => {
    const address = location.href;
    try {
      await navigator.clipboard.writeText(address);
      copied.value = "Copied. The address holds the values of this applicant; open it with the same page.";
    } catch {
      copied.value = address;
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
        {copied.value}
      </p>
    </section>
  );
}
