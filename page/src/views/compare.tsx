import { Bar } from "../charts/bar";
import { Waterfall, Widths } from "../charts/waterfall";
import { type Input, type Model, risk, type Row } from "../engine";
import { evaluate, type Person, useStore } from "../state";
import { decision, StartFrom } from "./applicant";
import { ValueInput } from "./controls";
import { percent, points } from "./format";
import { Name } from "./name";
import { ModelChoice } from "./overview";
import { forPeople, type Told } from "./words";

export function CompareView() {
  const store = useStore();
  const { versus } = store;
  return (
    <>
      <h1>{versus.value === "models" ? "One applicant, two models" : "Two applicants"}</h1>
      {store.models.length > 1 && (
        <fieldset class="choice screen-only">
          <legend class="unseen">Compare</legend>
          {(["models", "applicants"] as const).map((what) => (
            <label key={what}>
              <input type="radio" name="versus" checked={versus.value === what} onChange={() => (versus.value = what)} />
              {what === "models" ? "Two models" : "Two applicants"}
            </label>
          ))}
        </fieldset>
      )}
      {versus.value === "models" ? <Models /> : <Applicants />}
    </>
  );
}

function Headline({ name, value, note }: { name: string; value: number | null; note: string }) {
  return (
    <div class="headline">
      <p class="what">{name}</p>
      <p class="probability small">{percent(value)}</p>
      <p class="context">{note}</p>
    </div>
  );
}

function riskOrNull(model: Model, row: Row): number | null {
  try {
    return risk(model, row);
  } catch {
    return null;
  }
}

// ---- two applicants

function Applicants() {
  const store = useStore();
  const model = store.model.value;
  const [a, b] = [store.rows.a.value, store.rows.b.value];
  const [first, second] = [riskOrNull(model, a), riskOrNull(model, b)];
  const { explanation, error } = evaluate(model, b, a);
  const differ = (i: Input) => !i.protected && a[i.feature] !== b[i.feature];
  const decided = (value: number | null) => (value === null ? "" : decision(store, value));
  const inputs = model.info.inputs.filter((i) => !i.left);
  const gap = first !== null && second !== null ? `, ${points(second - first)} points` : "";
  return (
    <>
      <ModelChoice />
      <div class="headlines">
        <Headline name="Applicant A" value={first} note={decided(first)} />
        <Headline name="Applicant B" value={second} note={decided(second) + gap} />
      </div>
      {error && (
        <p class="notice" role="alert">
          {error}
        </p>
      )}
      <div class="compare">
        <section class="screen-only" aria-labelledby="values">
          <h2 id="values">Values</h2>
          <StartFrom person="b" />
          <table class="pairs">
            <caption class="unseen">Values of both applicants</caption>
            <thead>
              <tr>
                <th scope="col">Feature</th>
                <th scope="col">A</th>
                <th scope="col">B</th>
              </tr>
            </thead>
            <tbody>
              {inputs.map((input) => (
                <tr key={input.feature} class={differ(input) ? "differs" : ""}>
                  <th scope="row">
                    <Name text={input.label} />
                  </th>
                  {(["a", "b"] as const).map((person) => (
                    <td key={person}>
                      <Cell person={person} input={input} model={model} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
        <section aria-labelledby="way">
          <h2 id="way">From A to B</h2>
          {explanation && (
            <Waterfall explanation={forPeople(model, explanation, b, a)} from="Applicant A" to="Applicant B" />
          )}
        </section>
      </div>
    </>
  );
}

function Cell({ person, input, model }: { person: Person; input: Input; model: Model }) {
  const store = useStore();
  return (
    <ValueInput
      model={model}
      id={`${person}-${model.features.indexOf(input.feature)}`}
      whose={`, applicant ${person.toUpperCase()}`}
      input={input}
      value={store.rows[person].value[input.feature] ?? null}
      onChange={(value) => store.set(person, input.feature, value)}
    />
  );
}

// ---- two models

interface Both {
  name: string;
  pieces: (number | null)[];
}

/** The pieces of both explanations by name: subscales and features. */
function together(explanations: readonly (Told | null)[]): Both[] {
  const found = new Map<string, Both>();
  explanations.forEach((explanation, k) => {
    for (const part of explanation?.parts ?? []) {
      const pieces = part.terms.length ? part.terms.map((t) => [t.name, t.value] as const) : [[part.name, part.total] as const];
      for (const [name, value] of pieces) {
        const both = found.get(name) ?? { name, pieces: explanations.map(() => null) };
        both.pieces[k] = (both.pieces[k] ?? 0) + value;
        found.set(name, both);
      }
    }
  });
  return [...found.values()];
}

function Models() {
  const store = useStore();
  const row = store.rows.a.value;
  const results = store.models.map((model) => evaluate(model, row));
  const errors = results.flatMap((r) => (r.error ? [r.error] : []));
  const lines = together(results.map((r, k) => r.explanation && forPeople(store.models[k], r.explanation, row)));
  const largest = Math.max(0.01, ...lines.flatMap((l) => l.pieces.map((p) => Math.abs(p ?? 0))));
  const domain = [-Math.ceil(largest * 20) / 20, Math.ceil(largest * 20) / 20] as const;
  return (
    <>
      <p class="lead">The same applicant under both models, and how many points each feature adds or takes away.</p>
      <div class="headlines">
        {store.models.map((m, k) => (
          <Headline
            key={k}
            name={m.info.name}
            value={results[k].explanation?.risk ?? null}
            note={results[k].explanation ? `typical applicant ${percent(results[k].explanation.referenceRisk)}` : ""}
          />
        ))}
      </div>
      {errors.map((text) => (
        <p key={text} class="notice" role="alert">
          {text}
        </p>
      ))}
      <table class="bars models">
        <caption class="unseen">Both models, in points</caption>
        <Widths models={store.models.length} />
        <thead>
          <tr>
            <th scope="col">Feature</th>
            {store.models.map((m, k) => (
              <th key={k} scope="col" colSpan={2}>
                {m.info.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {lines.map((l) => (
            <tr key={l.name}>
              <th scope="row">
                <Name text={l.name} />
              </th>
              {l.pieces.map((p, k) => (
                <Piece key={k} value={p} domain={domain} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function Piece({ value, domain }: { value: number | null; domain: readonly [number, number] }) {
  const tone = value === null || Math.abs(value) < 5e-13 ? "none" : value > 0 ? "up" : "down";
  return (
    <>
      <td class="bar-cell">
        <Bar class={tone} from={0} to={value ?? 0} domain={domain} mark={0} />
      </td>
      <td class="numeric">{points(value)}</td>
    </>
  );
}
