/** What the reader has chosen: signals, and their text in the address. */

import { batch, computed, effect, type Signal, signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { explain, type Explanation, type Model, type Payload, prepare, type Row, RowError, type Value } from "./engine";
import { titleOf } from "./views/words";

export const VIEWS = ["overview", "model", "applicant", "compare", "validator"] as const;
export type View = (typeof VIEWS)[number];
export const SORTS = ["subscale", "importance", "name"] as const;
export type Sort = (typeof SORTS)[number];
export type Person = "a" | "b";

/** The contributions of a row, or the reason why it has none. */
export type Evaluated = { explanation: Explanation; error: null } | { explanation: null; error: string };

export interface Store {
  payload: Payload;
  models: Model[];
  /** What every applicant starts from; the address holds the differences. */
  start: Row;
  view: Signal<View>;
  /** Which model the applicant view uses. */
  which: Signal<number>;
  rows: Record<Person, Signal<Row>>;
  /** A cut-off to try; where the policy has one, that counts. */
  cutoff: Signal<number>;
  limit: { readonly value: number };
  frozen: Signal<string[]>;
  query: Signal<string>;
  sort: Signal<Sort>;
  /** Compare two applicants, or two models. */
  versus: Signal<"applicants" | "models">;
  /** As the system has it, until the reader chooses. */
  theme: Signal<"light" | "dark">;
  notice: Signal<string>;
  model: { readonly value: Model };
  evaluated: { readonly value: Evaluated };
  set(person: Person, feature: string, value: Value): void;
}

const Context = createContext<Store | null>(null);
export const StoreProvider = Context.Provider;
export const useStore = (): Store => useContext(Context)!;

export function evaluate(model: Model, row: Row, reference?: Row): Evaluated {
  try {
    return { explanation: explain(model, row, reference), error: null };
  } catch (error) {
    return { explanation: null, error: error instanceof RowError ? titleOf(model, error.feature) + error.why : String(error) };
  }
}

export function makeStore(payload: Payload): Store {
  const models = payload.models.map((_, index) => prepare(payload, index));
  // Of a feature that two models read, the first says where to start.
  const start = models.reduceRight<Row>((row, m) => ({ ...row, ...m.typical }), {});
  const first = { ...start, ...payload.start?.row };
  const which = signal(0);
  const rows = { a: signal<Row>(first), b: signal<Row>({ ...start }) };
  const model = computed(() => models[which.value]!);
  const cutoff = signal(payload.cutoff);
  return {
    payload,
    models,
    start,
    view: signal<View>(isView(payload.start?.view) ? payload.start.view : "overview"),
    which,
    rows,
    cutoff,
    limit: computed(() => model.value.info.ranking.cutoff ?? cutoff.value),
    frozen: signal<string[]>([]),
    query: signal(""),
    sort: signal<Sort>("subscale"),
    versus: signal(models.length > 1 ? "models" : "applicants"),
    theme: followSystem(),
    notice: signal(""),
    model,
    evaluated: computed(() => evaluate(model.value, rows.a.value)),
    set(person, feature, value) {
      rows[person].value = { ...rows[person].value, [feature]: value };
    },
  };
}

function followSystem(): Store["theme"] {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = signal<"light" | "dark">("light");
  const follow = () => (theme.value = dark.matches ? "dark" : "light");
  dark.addEventListener("change", follow);
  follow();
  return theme;
}

const isView = (text: unknown): text is View => VIEWS.includes(text as View);

// ---- the address

/** The state as text: only what differs from the start, so that most addresses are short. */
export function toAddress(store: Store): string {
  const query = new URLSearchParams();
  if (store.which.value) query.set("model", String(store.which.value));
  if (store.cutoff.value !== store.payload.cutoff) query.set("cutoff", String(store.cutoff.value));
  for (const name of store.frozen.value) query.append("fixed", name);
  if (store.query.value) query.set("search", store.query.value);
  if (store.sort.value !== "subscale") query.set("sort", store.sort.value);
  if (store.versus.value !== (store.models.length > 1 ? "models" : "applicants")) query.set("versus", store.versus.value);
  for (const person of ["a", "b"] as const) {
    const row = store.rows[person].value;
    for (const [feature, value] of Object.entries(row)) {
      if (value !== store.start[feature]) query.set(`${person}.${feature}`, value === null ? "" : String(value));
    }
  }
  const text = query.toString();
  return `#${store.view.value}${text ? `?${text}` : ""}`;
}

/** Take the state from an address; what it does not name goes back to the start. */
export function fromAddress(store: Store, address: string): void {
  const [name = "", text = ""] = address.replace(/^#\/?/, "").split(/\?(.*)/s);
  const query = new URLSearchParams(text);
  const unknown: string[] = [];
  const kinds = new Map(store.models.flatMap((m) => m.info.inputs.map((i) => [i.feature, i.kind] as const)));
  const read = (person: Person): Row => {
    const row = { ...store.start };
    for (const [key, value] of query) {
      if (!key.startsWith(`${person}.`)) continue;
      const feature = key.slice(2);
      const found = kinds.has(feature) ? readValue(kinds.get(feature)!, value) : undefined;
      if (found === undefined) unknown.push(feature);
      else row[feature] = found;
    }
    return row;
  };
  const cutoff = Number(query.get("cutoff") ?? NaN);
  const which = Number(query.get("model") ?? 0);
  const sort = query.get("sort") as Sort;
  batch(() => {
    if (isView(name)) store.view.value = name;
    store.which.value = store.models[which] ? which : 0;
    store.cutoff.value = cutoff >= 0 && cutoff <= 1 ? cutoff : store.payload.cutoff;
    store.frozen.value = query.getAll("fixed").filter((feature) => kinds.has(feature));
    store.query.value = query.get("search") ?? "";
    store.sort.value = SORTS.includes(sort) ? sort : "subscale";
    const versus = query.get("versus");
    const usual = store.models.length > 1 ? "models" : "applicants";
    store.versus.value = versus === "applicants" || (versus === "models" && store.models.length > 1) ? versus : usual;
    store.rows.a.value = read("a");
    store.rows.b.value = read("b");
    store.notice.value = unknown.length
      ? `The address has entries that this page cannot read; they were ignored: ${[...new Set(unknown)].join(", ")}.`
      : "";
  });
}

function readValue(kind: "continuous" | "categorical", text: string): Value | undefined {
  if (text === "") return null;
  if (kind === "categorical") return text;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

/** Keep address and state the same. Browsers limit how often the address may change, so it follows a pause. */
export function followAddress(store: Store): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let written = location.hash;
  if (location.hash.length > 1) fromAddress(store, location.hash);
  let view = store.view.value;
  effect(() => {
    const address = toAddress(store);
    clearTimeout(timer);
    timer = setTimeout(
      () => {
        if (address === written) return;
        const push = store.view.value !== view;
        view = store.view.value;
        written = address;
        try {
          if (push) history.pushState(null, "", address);
          else history.replaceState(null, "", address);
        } catch {
          // In a sandboxed frame of a notebook there is no address to keep.
        }
      },
      store.view.value === view ? 250 : 0,
    );
  });
  const follow = () => {
    if (location.hash === written) return;
    written = location.hash;
    view = viewOf(location.hash) ?? view;
    fromAddress(store, location.hash);
  };
  addEventListener("popstate", follow);
  addEventListener("hashchange", follow);
}

function viewOf(address: string): View | undefined {
  const name = address.replace(/^#\/?/, "").split("?")[0];
  return isView(name) ? name : undefined;
}
