import { useSignal } from "@preact/signals";
import { type Answer, type WhatIf, whatIf } from "../engine";
import { useStore } from "../state";
import { percent } from "./format";
import { useLater } from "./pause";
import { vocabulary } from "./words";

const ANSWERS = 3;

type Found = { answer: WhatIf; error: null } | { answer: null; error: string };

/** The cheapest changes that bring the applicant to the cut-off, by exact search. */
export function WhatIfSection() {
  const store = useStore();
  const found = useSignal<Found | null>(null);
  const waiting = useSignal(true);
  const [model, row, cutoff, frozen] = [store.model.value, store.rows.a.value, store.cutoff.value, store.frozen.value];
  const inputs = [model, row, cutoff, frozen];
  const shown = useSignal<unknown[]>([]);
  waiting.value = inputs.some((value, i) => value !== shown.value[i]);
  useLater(() => {
    try {
      found.value = { answer: whatIf(model, row, cutoff, { frozen, answers: ANSWERS }), error: null };
    } catch (error) {
      found.value = { answer: null, error: error instanceof Error ? error.message : String(error) };
    }
    shown.value = inputs;
  }, inputs);
  return (
    <section class={`what-if ${waiting.value ? "waiting" : ""}`} aria-labelledby="what-if" aria-busy={waiting.value}>
      <h2 id="what-if">What would change the decision</h2>
      {found.value?.error && <p class="hint">{found.value.error}</p>}
      {found.value?.answer && <Answers found={found.value.answer} />}
      <Frozen />
    </section>
  );
}

function Answers({ found }: { found: WhatIf }) {
  const store = useStore();
  const { chance } = vocabulary(store.payload);
  const goal = `${store.payload.adverse === "positive" ? "below" : "at least"} ${percent(found.cutoff)}`;
  if (!found.reached) {
    return (
      <>
        <p>{`No allowed change reaches ${goal}. The best is ${percent(found.reachable.risk)}:`}</p>
        <Changes answer={found.reachable} />
      </>
    );
  }
  if (found.answers.length === 1 && !found.answers[0].changes.length) {
    return <p>{`Nothing needs to change: the ${chance} is ${goal} already.`}</p>;
  }
  return (
    <>
      <p class="hint">{`The fewest changes that bring the ${chance} to ${goal}, by exact search:`}</p>
      <ol class="answers">
        {found.answers.map((answer, i) => (
          <li key={i}>
            <Changes answer={answer} />
          </li>
        ))}
      </ol>
    </>
  );
}

function Changes({ answer }: { answer: Answer }) {
  const store = useStore();
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
            <span class="name">{c.feature}</span> {c.fromText} <span aria-label="to">→</span> <strong>{c.toText}</strong>{" "}
            <button
              type="button"
              class="quiet screen-only"
              aria-label={`Search again with ${c.feature} as it is`}
              title="Search again with this feature as it is"
              onClick={() => freeze(c.feature)}
            >
              keep as is
            </button>
          </li>
        ))}
      </ul>
      <p class="after">
        {percent(answer.risk)}
        <button type="button" class="quiet screen-only" onClick={apply}>
          Apply
        </button>
      </p>
    </div>
  );
}

function Frozen() {
  const { frozen } = useStore();
  if (!frozen.value.length) return null;
  return (
    <p class="frozen">
      Kept as they are:{" "}
      {frozen.value.map((name) => (
        <button
          key={name}
          type="button"
          class="chip"
          aria-label={`Let ${name} change again`}
          onClick={() => (frozen.value = frozen.value.filter((f) => f !== name))}
        >
          {name} <span aria-hidden="true">×</span>
        </button>
      ))}
    </p>
  );
}
