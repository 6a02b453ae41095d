/** A study with people: questions about applicants in two ways, answers and times in a file that they send themselves. */

import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import "./style.css";

type Unit = "log_odds" | "probability";

interface Applicant {
  name: string;
  start: string;
  rows: [string, string, string][];
  total: string | null;
}

interface Question {
  text: string;
  applicants: Applicant[];
  choices: string[];
}

interface Study {
  study: string;
  title: string;
  outcome: string;
  forms: Record<string, { unit: Unit; questions: string[] }[]>;
  questions: Record<Unit, Record<string, Question>>;
}

interface Given {
  question: string;
  unit: Unit;
  choice: number;
  seconds: number;
  away: number;
}

interface Person {
  form: string;
  code: string;
  person: string;
}

type Step = { kind: "intro"; unit: Unit; first: boolean } | { kind: "question"; unit: Unit; name: string; number: number };

const UNIT_WORDS: Record<Unit, string> = { log_odds: "log odds", probability: "probability" };

function App({ study }: { study: Study }) {
  const [person, setPerson] = useState<Person | null>(null);
  const [at, setAt] = useState(0);
  const [answers, setAnswers] = useState<Given[]>([]);
  const [background, setBackground] = useState<Record<string, string> | null>(null);
  if (person === null) return <Welcome study={study} start={setPerson} />;
  const steps = stepsOf(study, person.form);
  const step = steps[at];
  const next = () => setAt(at + 1);
  if (step?.kind === "intro") return <Intro key={at} study={study} unit={step.unit} first={step.first} next={next} />;
  if (step) {
    const done = (given: Given) => {
      setAnswers([...answers, given]);
      next();
    };
    const count = steps.filter((s) => s.kind === "question").length;
    return <Asked key={at} study={study} step={step} count={count} done={done} />;
  }
  if (background === null) return <Background done={setBackground} />;
  return <Send file={{ study: study.study, ...person, answers, background }} />;
}

function stepsOf(study: Study, form: string): Step[] {
  let number = 0;
  return study.forms[form].flatMap(({ unit, questions }, block): Step[] => [
    { kind: "intro", unit, first: block === 0 },
    ...questions.map((name): Step => ({ kind: "question", unit, name, number: ++number })),
  ]);
}

/** A heading that has the focus when its screen opens, so that keyboard and screen reader start there. */
function Heading({ children }: { children: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    heading.current?.focus();
    window.scrollTo(0, 0);
  }, []);
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children}
    </h1>
  );
}

// ---- before

function randomBytes(n: number): number[] {
  return [...crypto.getRandomValues(new Uint8Array(n))];
}

/** The form that a code names by its first letter; without one, a random form. */
function formOf(study: Study, code: string): string | null {
  const forms = Object.keys(study.forms);
  if (code === "") return forms[randomBytes(1)[0] % forms.length];
  return forms.find((form) => code.toUpperCase().startsWith(form)) ?? null;
}

function Welcome({ study, start }: { study: Study; start: (person: Person) => void }) {
  const [agreed, setAgreed] = useState(false);
  const [code, setCode] = useState("");
  const [problem, setProblem] = useState("");
  const begin = (event: Event) => {
    event.preventDefault();
    const given = code.trim();
    const form = formOf(study, given);
    if (!agreed) return setProblem("Please tick the box if you want to take part.");
    if (form === null) return setProblem("This code is not one of the study. Leave the field empty if you have none.");
    start({ form, code: given, person: randomBytes(8).map((b) => b.toString(16).padStart(2, "0")).join("") });
  };
  return (
    <form onSubmit={begin} noValidate>
      <h1>{study.title}</h1>
      <p>
        A program estimates the probability that somebody {study.outcome.replace(/^the applicant /, "")}. We want to know
        which way of explaining its estimates is easier to understand. You will see invented applicants and answer twelve
        questions. It takes about fifteen minutes. Please do it in one go, without a calculator and without help.
      </p>
      <p>
        The page sends nothing. It notes your choices and how long each took. At the end you can save them as a file, and
        send it or not. The file holds no name, no date and no address. You may stop at any time by closing the page.
      </p>
      <label class="choice">
        <input type="checkbox" checked={agreed} onChange={(e) => setAgreed(e.currentTarget.checked)} />
        <span>I am 18 or older, I have read this, and I take part of my own free will.</span>
      </label>
      <p>
        <label>
          Code, if you were given one{" "}
          <input type="text" autocomplete="off" value={code} onInput={(e) => setCode(e.currentTarget.value)} />
        </label>
      </p>
      <Problem text={problem} />
      <button type="submit">Start</button>
    </form>
  );
}

const Problem = ({ text }: { text: string }) => (
  <p class="problem" role="alert">
    {text}
  </p>
);

function Intro(props: { study: Study; unit: Unit; first: boolean; next: () => void }) {
  const { unit, first, next } = props;
  return (
    <>
      <Heading>{`${first ? "First" : "Second"} part: ${UNIT_WORDS[unit]}`}</Heading>
      <p>
        A table shows an applicant: the average applicant's {UNIT_WORDS[unit]} in the first row, then the effect of each of
        the applicant's values compared with an average one. The effects are added to the first row; the sum is the
        applicant's own {UNIT_WORDS[unit]}.
      </p>
      {unit === "log_odds" && (
        <p>
          Log odds are another scale for probabilities. Log odds of 0 are a probability of 50%, positive ones more,
          negative ones less.
        </p>
      )}
      <Key unit={unit} />
      <p>You will see this again beside every question.</p>
      <p>Choose the answer that is nearest. You cannot go back.</p>
      <button type="button" onClick={next}>
        Go on
      </button>
    </>
  );
}

/** How numbers in this way of showing them become a probability: at hand before and during the questions. */
function Key({ unit }: { unit: Unit }) {
  if (unit === "probability") {
    return (
      <p class="soft">
        Effects are in percentage points: 30%, an effect of +5.0 points and one of −2.0 points make 33%.
      </p>
    );
  }
  return (
    <p class="soft">
      The probability is 1 / (1 + e<sup>−log odds</sup>). Log odds and their probabilities: −2 is 12%, −1 is 27%, 0 is 50%,
      +1 is 73%, +2 is 88%.
    </p>
  );
}

// ---- questions

/** The seconds since a screen opened, and how many of them the page was hidden. */
function useClock(): () => { seconds: number; away: number } {
  const clock = useRef({ start: performance.now(), hidden: 0, since: null as number | null });
  useEffect(() => {
    const change = () => {
      const now = performance.now();
      const { since } = clock.current;
      if (document.hidden) clock.current.since = now;
      else if (since !== null) Object.assign(clock.current, { hidden: clock.current.hidden + now - since, since: null });
    };
    document.addEventListener("visibilitychange", change);
    return () => document.removeEventListener("visibilitychange", change);
  }, []);
  const seconds = (ms: number) => Math.round(ms) / 1000;
  return () => ({ seconds: seconds(performance.now() - clock.current.start), away: seconds(clock.current.hidden) });
}

function Asked(props: {
  study: Study;
  step: Extract<Step, { kind: "question" }>;
  count: number;
  done: (given: Given) => void;
}) {
  const { study, step, count, done } = props;
  const { text, applicants, choices } = study.questions[step.unit][step.name];
  const [choice, setChoice] = useState(-1);
  const [problem, setProblem] = useState("");
  const clock = useClock();
  const send = (event: Event) => {
    event.preventDefault();
    if (choice < 0) return setProblem("Please choose an answer. If you do not know, choose the likeliest.");
    done({ question: step.name, unit: step.unit, choice, ...clock() });
  };
  return (
    <form onSubmit={send} data-question={step.name} data-unit={step.unit}>
      <Heading>{`Question ${step.number} of ${count}`}</Heading>
      <div class="cards">
        {applicants.map((applicant) => (
          <Card key={applicant.name} applicant={applicant} unit={step.unit} />
        ))}
      </div>
      <Key unit={step.unit} />
      <fieldset>
        <legend>{text}</legend>
        {choices.map((words, k) => (
          <label class="choice" key={words}>
            <input type="radio" name="choice" checked={choice === k} onChange={() => setChoice(k)} />
            <span>{words}</span>
          </label>
        ))}
      </fieldset>
      <Problem text={problem} />
      <button type="submit">Next</button>
    </form>
  );
}

function Card({ applicant, unit }: { applicant: Applicant; unit: Unit }) {
  const { name, start, rows, total } = applicant;
  return (
    <div class="card">
      <table>
        <caption>{name}</caption>
        <tbody>
          <tr>
            <th scope="row">Average applicant, {UNIT_WORDS[unit]}</th>
            <td>{start}</td>
          </tr>
          {rows.map(([label, value, effect]) => (
            <tr key={label}>
              <th scope="row">
                {label} <span>{value}</span>
              </th>
              <td>{effect}</td>
            </tr>
          ))}
          {total !== null && (
            <tr class="total">
              <th scope="row">
                {name}, {UNIT_WORDS[unit]}
              </th>
              <td>{total}</td>
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}

// ---- after

const ASKED: Record<string, { text: string; choices: string[] }> = {
  knew: {
    text: "Did you know log odds before?",
    choices: ["No", "I had heard of them", "I have worked with them", "I would rather not say"],
  },
  easier: { text: "Which part was easier?", choices: ["Log odds", "Probability", "Neither", "I would rather not say"] },
};

function Background({ done }: { done: (given: Record<string, string>) => void }) {
  const [given, setGiven] = useState<Record<string, string>>({});
  const send = (event: Event) => {
    event.preventDefault();
    done(given);
  };
  return (
    <form onSubmit={send}>
      <Heading>Two last questions</Heading>
      {Object.entries(ASKED).map(([name, { text, choices }]) => (
        <fieldset key={name}>
          <legend>{text}</legend>
          {choices.map((words) => (
            <label class="choice" key={words}>
              <input
                type="radio"
                name={name}
                checked={given[name] === words}
                onChange={() => setGiven({ ...given, [name]: words })}
              />
              <span>{words}</span>
            </label>
          ))}
        </fieldset>
      ))}
      <button type="submit">Finish</button>
    </form>
  );
}

function Send({ file }: { file: Person & { study: string; answers: Given[]; background: Record<string, string> } }) {
  const text = `${JSON.stringify(file, null, 1)}\n`;
  const save = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = `answers-${file.person}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  return (
    <>
      <Heading>Thank you</Heading>
      <p>Save your answers, and send the file to whoever gave you this page. Until you do, nobody has them.</p>
      <button type="button" onClick={save}>
        Save my answers
      </button>
      <details>
        <summary>Or copy this text into a message</summary>
        <textarea readOnly aria-label="Your answers as text" value={text} />
      </details>
    </>
  );
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = () => (document.documentElement.dataset.theme = dark.matches ? "dark" : "light");
dark.addEventListener("change", paint);
paint();

const payload = document.getElementById("payload")!.textContent!;
render(<App study={JSON.parse(payload)} />, document.getElementById("app")!);
