import { useSignal } from "@preact/signals";
import { type Answer, refused, type WhatIf, whatIf } from "../engine";
import { useStore } from "../state";
import { beside } from "./format";
import { useLater } from "./pause";
import { say, titleOf } from "./words";

const ANSWERS = 3;

type Found = { answer: WhatIf; error: null } | { answer: null; error: string };

/** The smallest changes that lead to approval; nothing is shown that belongs to other values. */
export function WhatIfSection() {
  const store = useStore();
  const found = useSignal<(Found & { inputs: unknown[] }) | null>(null);
  const { explanation } = store.evaluated.value;
  const [model, row, cutoff, frozen] = [store.model.value, store.rows.a.value, store.limit.value, store.frozen.value];
  const inputs = [model, row, cutoff, frozen];
  const needed = explanation !== null && refused(model, explanation.risk, cutoff);
  useLater(() => {
    if (!needed) return;
    try {
      found.value = { answer: whatIf(model, row, cutoff, { frozen, answers: ANSWERS }), error: null, inputs };
    } catch (error) {
      found.value = { answer: null, error: error instanceof Error ? error.message : String(error), inputs };
    }
  }, inputs);
  if (!explanation) return null;
  const current = found.value?.inputs.every((value, i) => value === inputs[i]) ? found.value : null;
  const waiting = needed && !current;
  return (
    <section class={`what-if ${waiting ? "waiting" : ""}`} aria-labelledby="what-if" aria-busy={waiting}>
      <h2 id="what-if">The smallest changes that would lead to approval</h2>
      {!needed && <p>Nothing needs to change.</p>}
      {waiting && <p>Looking for the smallest changes…</p>}
      {needed && current?.error && <p class="hint">{current.error}</p>}
      {needed && current?.answer && <Answers found={current.answer} />}
      <Frozen />
    </section>
  );
}

function Answers({ found }: { found: WhatIf }) {
  const store = useStore();
  if (!found.reached) {
    const { changes, risk } = found.reachable;
    const best = changes.length ? ` The best that can be reached is ${beside(risk, store.limit.value)}:` : "";
    return (
      <>
        <p>{`No possible change leads to approval.${best}`}</p>
        {best && <Changes answer={found.reachable} />}
      </>
    );
  }
  return (
    <ol class="answers">
      {found.answers.map((answer, i) => (
        <li key={i}>
          <Changes answer={answer} />
        </li>
      ))}
    </ol>
  );
}

function Changes({ answer }: { answer: Answer }) {
  const store = useStore();
  const model = store.model.value;
  const apply = () => {
    const row = { ...store.rows.a.value };
    for (const change of answer.changes) row[change.feature] = change.to;
    store.rows.a.value = row;
  };
  const freeze = (feature: string) => (store.frozen.value = [...store.frozen.value, feature]);
  return (
    <div class="answer">
      <ul>
        {answer.changes.map((c) => (
          <li key={c.feature}>
            <span class="name">{titleOf(model, c.feature)}</span> {say(model, c.feature, c.from)} <span aria-label="to">→</span>{" "}
            <strong>{say(model, c.feature, c.to)}</strong>{" "}
            <button
              type="button"
              class="quiet screen-only"
              aria-label={`Search again with ${titleOf(model, c.feature)} as it is`}
              title="Search again with this feature as it is"
              onClick={() => freeze(c.feature)}
            >
              keep as is
            </button>
          </li>
        ))}
      </ul>
      <p class="after">
        gives {beside(answer.risk, store.limit.value)}
        <button type="button" class="quiet screen-only" onClick={apply}>
          Apply
        </button>
      </p>
    </div>
  );
}

function Frozen() {
  const { frozen, model } = useStore();
  if (!frozen.value.length) return null;
  return (
    <p class="frozen">
      Kept as they are:{" "}
      {frozen.value.map((name) => (
        <button
          key={name}
          type="button"
          class="chip"
          aria-label={`Let ${titleOf(model.value, name)} change again`}
          onClick={() => (frozen.value = frozen.value.filter((f) => f !== name))}
        >
          {titleOf(model.value, name)} <span aria-hidden="true">×</span>
        </button>
      ))}
    </p>
  );
}
