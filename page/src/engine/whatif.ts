/** The provably cheapest changes that bring an applicant to a target: as explain/what_if.py. */

import { concrete, type FeatureMoves, featureMoves, movesFrom } from "./atoms";
import { codeOf, isMissing } from "./levels";
import { exactSum, labelOf } from "./numbers";
import { type Applicant, type Choice, FormFront, FormFronts, makeProblem, type Problem } from "./pareto";
import { refused } from "./reasons";
import { pairLevels, risk } from "./score";
import type { Answer, Change, Model, Row, Value, WhatIf, WhatIfOptions } from "./types";

const ROUNDING = 1e-12; // of the risk: the front adds up scores with pairs in another order than scoring does

/** Returns the cheapest changes after which a cut-off approves, then others that each leave out some feature. */
export function whatIf(model: Model, row: Row, cutoff: number, options: WhatIfOptions = {}): WhatIf {
  const targets = featureMoves(model, options);
  const problem = makeProblem(model, model.info.ranking.sign, targets);
  return new Search(problem, readApplicant(model, row, targets), cutoff).solve(options.answers ?? 3);
}

function readApplicant(model: Model, row: Row, targets: Map<string, FeatureMoves>): Applicant {
  const own = Object.create(null) as Row;
  for (const name of model.features) own[name] = plainValue(model, name, row[name]);
  return {
    risk: risk(model, row),
    row: own,
    terms: model.parts.map((part) => new Map(part.terms.map((term) => [term.name, term.value(row)]))),
    pairLevels: model.parts.map((part) => part.pairs.map((pair) => pairLevels(pair, row))),
    atoms: new Map([...targets].map(([name, t]) => [name, codeOf(t.atoms.levels, name, row[name])])),
  };
}

function plainValue(model: Model, name: string, value: Value | undefined): Value {
  if (isMissing(value)) return null;
  return model.schema.features![name].kind === "categorical" ? labelOf(value!) : value === "" ? null : value!;
}

class Search {
  private readonly moves = new Map<string, ReturnType<typeof movesFrom>>();

  constructor(
    private readonly problem: Problem,
    private readonly applicant: Applicant,
    private readonly cutoff: number,
  ) {
    for (const [name, t] of problem.targets) {
      const moves = movesFrom(t, applicant.atoms.get(name)!);
      if (moves.target.length) this.moves.set(name, moves);
    }
  }

  solve(most: number): WhatIf {
    const { risk } = this.applicant;
    if (this.reaches(risk)) {
      const stay = { changes: [], risk, cost: 0 };
      return { reached: true, answers: [stay], reachable: stay };
    }
    const fronts = this.fronts(new Set());
    const first = this.cheapest(fronts);
    const answers = first === null ? [] : this.diverse(first, most);
    return { reached: answers.length > 0, answers, reachable: this.furthest(fronts) };
  }

  private reaches(risk: number, slack = 0): boolean {
    const { model, sign } = this.problem;
    return !refused(model, risk - sign * slack, this.cutoff);
  }

  private fronts(held: Set<string>): FormFront[] {
    const moves = new Map([...this.moves].filter(([name]) => !held.has(name)));
    return new FormFronts(this.problem, this.applicant, moves).build();
  }

  /** The cheapest answer, then the cheapest that contains none of those given, and so on. */
  private diverse(first: Answer, most: number): Answer[] {
    const given: Answer[] = [];
    const key = (held: Set<string>) => JSON.stringify([...held].sort());
    const tried = new Set([key(new Set())]);
    const price = (answer: Answer) => answer.cost + this.problem.perFeature * answer.changes.length;
    let queue = [{ price: price(first), number: 0, held: new Set<string>(), answer: first }];
    while (queue.length && given.length < most) {
      const next = queue.reduce((a, b) => (b.price < a.price || (b.price === a.price && b.number < a.number) ? b : a));
      queue = queue.filter((entry) => entry !== next);
      const features = new Set(next.answer.changes.map((change) => change.feature));
      let blocking = given.find((answer) => answer.changes.every((change) => features.has(change.feature)));
      if (blocking === undefined) {
        given.push(next.answer);
        blocking = next.answer;
        if (given.length === most) break;
      }
      for (const { feature } of blocking.changes) {
        const held = new Set([...next.held, feature]);
        if (tried.has(key(held))) continue;
        tried.add(key(held));
        const answer = this.cheapest(this.fronts(held));
        if (answer !== null) queue.push({ price: price(answer), number: tried.size, held, answer });
      }
    }
    return given;
  }

  private cheapest(fronts: FormFront[]): Answer | null {
    let best: Answer | null = null;
    let least = Infinity;
    for (const front of fronts) {
      for (let state = 0; state < front.risk.length; state++) {
        if (!this.reaches(front.risk[state], ROUNDING)) continue;
        if (front.cost[state] >= least) break;
        const answer = this.answer(front.read(state));
        // Scoring has the last word: should it round another way, the next state will do.
        if (this.reaches(answer.risk)) {
          best = answer;
          least = front.cost[state];
          break;
        }
      }
    }
    return best;
  }

  /** The cheapest way to the best risk there is. */
  private furthest(fronts: FormFront[]): Answer {
    let best: { risk: number; cost: number; front: FormFront; state: number } | null = null;
    for (const front of fronts) {
      const last = front.risk.at(-1)!;
      const state = front.risk.indexOf(last);
      const found = { risk: this.problem.sign * last, cost: front.cost[state], front, state };
      if (best === null || found.risk < best.risk || (found.risk === best.risk && found.cost < best.cost)) best = found;
    }
    return this.answer(best!.front.read(best!.state));
  }

  /** The changes of a choice in the applicant's own values, and the risk by scoring the changed row. */
  private answer(choice: Choice): Answer {
    const changes: Change[] = [];
    const row = Object.assign(Object.create(null) as Row, this.applicant.row);
    for (const [name, target] of this.problem.targets) {
      const to = choice.get(name);
      if (to === undefined) continue;
      const change = this.change(name, target, to);
      changes.push(change);
      row[name] = change.to;
    }
    return { changes, risk: risk(this.problem.model, row), cost: exactSum(changes.map((change) => change.cost)) };
  }

  private change(feature: string, target: FeatureMoves, to: number): Change {
    const atom = this.applicant.atoms.get(feature)!;
    const moves = this.moves.get(feature)!;
    const from = this.applicant.row[feature];
    const at = moves.target.indexOf(to);
    const value = concrete(target, to, typeof from === "number" ? from : NaN, atom);
    return {
      feature,
      from,
      to: value,
      cost: moves.price[at],
    };
  }
}
