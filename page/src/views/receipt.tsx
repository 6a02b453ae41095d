import { useSignal } from "@preact/signals";
import { canCheckReceipts, checkReceipt, type ReceiptCheck } from "../engine";
import { useStore } from "../state";
import { Mark } from "./overview";

type Found = { checks: ReceiptCheck[]; error: string; of: unknown[] };

/** Checks the receipt of a decision on the applicant shown; nothing is shown that belongs to other values. */
export function ReceiptSection() {
  const store = useStore();
  const receipt = useSignal<string | null>(null);
  const key = useSignal<string | null>(null);
  const found = useSignal<Found | null>(null);
  const of = [store.model.value, store.rows.a.value, receipt.value, key.value];
  const check = async () => {
    const [model, row] = [store.model.value, store.rows.a.value];
    try {
      found.value = { checks: await checkReceipt(receipt.value!, key.value!, model, row), error: "", of };
    } catch (error) {
      found.value = { checks: [], error: error instanceof Error ? error.message : String(error), of };
    }
  };
  const current = found.value?.of.every((value, i) => value === of[i]) ? found.value : null;
  const read = (to: typeof receipt) => async (event: { currentTarget: HTMLInputElement }) => {
    to.value = (await event.currentTarget.files?.[0]?.text()) ?? null;
  };
  return (
    <details class="paste screen-only receipt">
      <summary>Check a receipt</summary>
      {!canCheckReceipts() && (
        <p class="hint">
          The browser checks no signatures here. Open this page from its own file, or over https, or use plainrisk verify.
        </p>
      )}
      <label>
        <span>The receipt of a decision on this applicant</span>
        <input type="file" accept=".json" onChange={read(receipt)} />
      </label>
      <label>
        <span>The public key of the lender who decided</span>
        <input type="file" accept=".pem" onChange={read(key)} />
      </label>
      <button type="button" disabled={receipt.value === null || key.value === null || !canCheckReceipts()} onClick={check}>
        Check
      </button>
      <div role="status">
        {current?.error && <p class="hint">{current.error}</p>}
        {current && !current.error && (
          <ul class="checks">
            {current.checks.map((c) => (
              <li key={c.name}>
                <Mark holds={c.holds} />
                <span>
                  <strong>{c.name}</strong>
                  {c.detail}
                </span>
              </li>
            ))}
          </ul>
        )}
      </div>
    </details>
  );
}
