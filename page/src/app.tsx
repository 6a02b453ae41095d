import { useSignalEffect } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Payload } from "./engine";
import { followAddress, makeStore, StoreProvider, useStore, type View, VIEWS } from "./state";
import { ApplicantView } from "./views/applicant";
import { CompareView } from "./views/compare";
import { ModelView } from "./views/model";
import { OverviewView } from "./views/overview";
import { ValidatorView } from "./views/validator";

const BODIES = {
  overview: OverviewView,
  model: ModelView,
  applicant: ApplicantView,
  compare: CompareView,
  validator: ValidatorView,
} satisfies Record<View, () => unknown>;

const TITLES: Record<View, string> = {
  overview: "Overview",
  model: "Model",
  applicant: "Applicant",
  compare: "Compare",
  validator: "Validator",
};

export function App({ payload }: { payload: Payload }) {
  const store = useMemo(() => makeStore(payload), [payload]);
  useMemo(() => followAddress(store), [store]);
  return (
    <StoreProvider value={store}>
      <Page />
    </StoreProvider>
  );
}

function Page() {
  const store = useStore();
  const view = store.view.value;
  const Body = BODIES[view];
  useSignalEffect(() => {
    document.title = `${store.payload.title}: ${TITLES[store.view.value]}`;
    document.documentElement.dataset.theme = store.theme.value;
  });
  useEffect(() => {
    document.documentElement.dataset.adverse = store.payload.adverse;
  }, [store]);
  return (
    <>
      <a class="skip" href="#main" onClick={jump}>
        Skip to the content
      </a>
      <Header />
      <main id="main" tabIndex={-1} class={`view-${view}`}>
        {store.notice.value && (
          <p class="notice" role="status">
            {store.notice.value}
          </p>
        )}
        <Body />
      </main>
      <footer class="screen-only">
        <p>
          One file that holds the model. It works without a network, and sends nothing anywhere. Made by plainrisk{" "}
          {store.payload.plainrisk}.
        </p>
      </footer>
    </>
  );
}

function jump(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Header() {
  const store = useStore();
  return (
    <header>
      <p class="brand">{store.payload.title}</p>
      <nav aria-label="Views">
        <ul>
          {VIEWS.map((view) => (
            <li key={view}>
              <a
                href={`#${view}`}
                aria-current={store.view.value === view ? "page" : undefined}
                onClick={(event) => {
                  // A link would lose the applicant, and in a notebook's frame it would leave the page.
                  event.preventDefault();
                  store.view.value = view;
                  scrollTo(0, 0);
                }}
              >
                {TITLES[view]}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <ThemeButton />
    </header>
  );
}

function ThemeButton() {
  const { theme } = useStore();
  const dark = theme.value === "dark";
  return (
    <button
      type="button"
      class="theme"
      aria-label={dark ? "Light colors" : "Dark colors"}
      title={dark ? "Light colors" : "Dark colors"}
      onClick={() => (theme.value = dark ? "light" : "dark")}
    >
      <svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true">
        <circle cx="10" cy="10" r="7.5" class="theme-ring" />
        <path d="M10 2.5a7.5 7.5 0 0 1 0 15z" class="theme-half" />
      </svg>
    </button>
  );
}
