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

/** The same invented applicant both ways: shown before the questions, with the answer. */
const EXAMPLE: Record<Unit, Applicant> = {
  log_odds: {
    name: "An example",
    start: "−0.85",
    rows: [
      ["Savings", "below 100 DM", "+0.23"],
      ["Property", "real estate", "−0.09"],
    ],
    total: "−0.71",
  },
  probability: {
    name: "An example",
    start: "30%",
    rows: [
      ["Savings", "below 100 DM", "+5.0 points"],
      ["Property", "real estate", "−2.0 points"],
    ],
    total: "33%",
  },
};

function App({ study }: { study: Study }) {
  const [person, setPerson] = useState<Person | null>(null);
  const [at, setAt] = useState(0);
  const [answers, setAnswers] = useState<Given[]>([]);
  const [background, setBackground] = useState<Record<string, string> | null>(null);
  if (person === null) return <Welcome study={study} start={setPerson} />;
  const steps = stepsOf(study, person.form);
  const step = steps[at];
  const next = () => setAt(at + 1);
  if (step?.kind === "intro") return <Intro key={at} unit={step.unit} first={step.first} next={next} />;
  if (step) {
    const done = (given: Given) => {
      setAnswers([...answers, given]);
      next();
    };
    const count = steps.filter((s) => s.kind === "question").length;
    return (
      <>
        <div class="progress" aria-hidden="true">
          <span style={{ width: `${(100 * (step.number - 1)) / count}%` }} />
        </div>
        <Asked key={at} study={study} step={step} count={count} done={done} />
      </>
    );
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
    <form onSubmit={begin} noValidate class="welcome">
      <h1>{study.title}</h1>
      <p class="lead">
        A program estimates the probability that somebody {study.outcome.replace(/^the applicant /, "")}. Which way of
        explaining its estimates is easier to understand? You can help us find out.
      </p>
      <ul class="facts">
        <li>
          <strong>12 questions</strong> about invented applicants
        </li>
        <li>
          <strong>15 minutes</strong> in one go, without a calculator and without help
        </li>
        <li>
          <strong>Nothing is sent</strong> and you may stop at any time by closing the page
        </li>
      </ul>
      <p>
        The page notes your choices and how long each took. At the end you can save them as a file, and send it or not. The
        file holds no name, no date and no address.
      </p>
      <label class="choice">
        <input type="checkbox" checked={agreed} onChange={(e) => setAgreed(e.currentTarget.checked)} />
        <span>I am 18 or older, I have read this, and I take part of my own free will.</span>
      </label>
      <p>
        <label class="field">
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

function Intro({ unit, first, next }: { unit: Unit; first: boolean; next: () => void }) {
  return (
    <>
      <Heading>{`${first ? "First" : "Second"} part: ${UNIT_WORDS[unit]}`}</Heading>
      <p>
        A table shows an applicant. It starts with the average applicant's {UNIT_WORDS[unit]}; below stands what each of the
        applicant's values adds, compared with an average value. The sum is the applicant's own {UNIT_WORDS[unit]}.
      </p>
      {unit === "log_odds" && (
        <p>
          Log odds are another scale for probabilities: 0 stands for 50%, positive log odds for more, negative ones for less.
        </p>
      )}
      <div class="pair">
        <Card applicant={EXAMPLE[unit]} unit={unit} />
        <Key unit={unit} />
      </div>
      {unit === "log_odds" && <p>So the probability in the example is 33%.</p>}
      <p>The box stays beside every question. Choose the answer that is nearest. You cannot go back.</p>
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
      <aside class="key" aria-label="How to read the numbers">
        Effects are in percentage points: 30%, an effect of +5.0 points and one of −2.0 points make 33%.
      </aside>
    );
  }
  return (
    <aside class="key" aria-label="How to read the numbers">
      The probability is 1 / (1 + e<sup>−log odds</sup>).
      <table>
        <tbody>
          <tr>
            <th scope="row">Log odds</th>
            {KNOWN.map(([score]) => (
              <td key={score}>{score}</td>
            ))}
          </tr>
          <tr>
            <th scope="row">Probability</th>
            {KNOWN.map(([score, share]) => (
              <td key={score}>{share}</td>
            ))}
          </tr>
        </tbody>
      </table>
    </aside>
  );
}

const KNOWN = [
  ["−2", "12%"],
  ["−1", "27%"],
  ["0", "50%"],
  ["+1", "73%"],
  ["+2", "88%"],
];

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
      <fieldset class={applicants.length > 1 ? "stacked" : "beside"}>
        <legend>{text}</legend>
        <div class="cards">
          {applicants.map((applicant) => (
            <Card key={applicant.name} applicant={applicant} unit={step.unit} />
          ))}
        </div>
        <div class="answers">
          <Key unit={step.unit} />
          <div class="choices">
            {choices.map((words, k) => (
              <label class="choice" key={words}>
                <input type="radio" name="choice" checked={choice === k} onChange={() => setChoice(k)} />
                <span>{words}</span>
              </label>
            ))}
          </div>
          <Problem text={problem} />
          <button type="submit">Next</button>
        </div>
      </fieldset>
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
              <td class={{ "+": "more", "−": "less" }[effect[0]]}>{effect}</td>
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
  const name = `answers-${file.person}.json`;
  const [saved, setSaved] = useState(false);
  const save = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    setSaved(true);
  };
  return (
    <>
      <Heading>Thank you</Heading>
      <p class="lead">That was the last question.</p>
      <p>Save your answers, and send the file to whoever gave you this page. Until you do, nobody has them.</p>
      <button type="button" onClick={save}>
        Save my answers
      </button>
      <p role="status">{saved && `Your answers are in the file ${name}, with your downloads. You may close this page.`}</p>
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
