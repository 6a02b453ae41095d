/** The fronts of a whole form, feature by feature inside a part, then part by part: as explain/pareto.py. */

import type { FeatureMoves, Moves } from "./atoms";
import { checkStates, type JointOptions, jointOptions, type Options, pareto } from "./elimination";
import { levelCount } from "./levels";
import { valueOf } from "./links";
import { exactSum } from "./numbers";
import { lastLink, leafValue, treeInput } from "./score";
import type { Model, ReadyPart, Row, TreePart, Value } from "./types";

const MOST_COMBINATIONS = 200_000; // of the moves in one part of trees, or of features shared by parts
const STAY = -1; // the target of the option to leave a feature as it is

/** The target each feature moves to; features that are not listed stay. */
export type Choice = Map<string, number>;

/** Pareto-optimal states: costs rise strictly, scores fall strictly. */
interface Front {
  cost: number[];
  score: number[];
  /** For every step, the state of the front before it and the option taken. */
  history: { parents: number[]; options: number[] }[];
}

interface Step {
  features: string[];
  /** The targets of each option, one per feature. */
  targets: number[][];
}

/** What is the same for all applicants. */
export interface Problem {
  model: Model;
  sign: number;
  targets: Map<string, FeatureMoves>;
  /** What changing a feature costs beside its steps: so much that as few features as possible change. */
  perFeature: number;
  /** The features that can move and stand in several parts. */
  shared: Set<string>;
}

export function makeProblem(model: Model, sign: number, targets: Map<string, FeatureMoves>): Problem {
  const steps = [...targets.values()].map((t) => levelCount(t.atoms.levels) * (t.declared.step_cost ?? 1));
  const uses = (name: string) => model.parts.filter((part) => part.features.includes(name)).length;
  const shared = new Set([...targets.keys()].filter((name) => uses(name) > 1));
  return { model, sign, targets, perFeature: 1 + exactSum(steps), shared };
}

/** One row as the search sees it. */
export interface Applicant {
  risk: number;
  row: Row;
  terms: Map<string, number>[];
  pairLevels: [number, number][][];
  /** The atom of each feature that can move. */
  atoms: Map<string, number>;
}

function pathTo(front: Front, state: number): number[] {
  const taken: number[] = [];
  for (const { parents, options } of [...front.history].reverse()) {
    taken.push(options[state]);
    state = parents[state];
  }
  return taken.reverse();
}

const pick = <T>(list: T[], keep: number[]): T[] => keep.map((k) => list[k]);

function restricted({ cost, score, history }: Front, keep: number[]): Front {
  const last = history.at(-1);
  const rest = last ? [{ parents: pick(last.parents, keep), options: pick(last.options, keep) }] : [];
  return { cost: pick(cost, keep), score: pick(score, keep), history: [...history.slice(0, -1), ...rest] };
}

/** Adds one of several options to every state and keeps the best; sign -1 prefers high scores. */
function addOptions(front: Front, cost: number[], score: number[], sign: number): Front {
  const m = cost.length;
  const n = front.cost.length * m;
  checkStates(n);
  const costs = new Float64Array(n);
  const scores = new Float64Array(n);
  const signed = new Float64Array(n);
  for (let i = 0, k = 0; i < front.cost.length; i++) {
    for (let j = 0; j < m; j++, k++) {
      costs[k] = front.cost[i] + cost[j];
      scores[k] = front.score[i] + score[j];
      signed[k] = sign * scores[k];
    }
  }
  const keep = pareto(costs, signed);
  const step = { parents: keep.map((k) => Math.floor(k / m)), options: keep.map((k) => k % m) };
  return { cost: keep.map((k) => costs[k]), score: keep.map((k) => scores[k]), history: [...front.history, step] };
}

/** The front of a whole form for one choice of the shared features. */
export class FormFront {
  constructor(
    readonly cost: number[],
    readonly risk: number[],
    private readonly total: Front,
    private readonly parts: Front[],
    private readonly steps: Step[][],
    private readonly shared: Choice,
  ) {}

  /** Which feature moves where. */
  read(state: number): Choice {
    const states = this.total.history.length ? pathTo(this.total, state) : [state];
    const found = new Map(this.shared);
    this.parts.forEach((part, k) => {
      pathTo(part, states[k]).forEach((option, s) => {
        const { features, targets } = this.steps[k][s];
        features.forEach((name, j) => targets[option][j] !== STAY && found.set(name, targets[option][j]));
      });
    });
    return found;
  }
}

/** Builds the fronts of a form for one applicant and the moves that are open to them. */
export class FormFronts {
  constructor(
    private readonly problem: Problem,
    private readonly applicant: Applicant,
    private readonly moves: Map<string, Moves>,
  ) {}

  /** A front for every combination of moves of the features that several parts share, cheapest first. */
  build(): FormFront[] {
    const names = [...this.problem.shared].filter((name) => this.moves.has(name));
    const options = names.map((name) => this.options(name));
    checkStates(
      options.reduce((product, { price }) => product * price.length, 1),
      MOST_COMBINATIONS,
    );
    let found: { prices: number[]; choice: Choice }[] = [{ prices: [], choice: new Map() }];
    names.forEach((name, k) => {
      const { price, target } = options[k];
      found = found.flatMap(({ prices, choice }) =>
        target.map((t, o) => ({
          prices: [...prices, price[o]],
          choice: t === STAY ? choice : new Map([...choice, [name, t]]),
        })),
      );
    });
    const priced = found.map(({ prices, choice }) => ({ price: exactSum(prices), choice }));
    return priced.sort((a, b) => a.price - b.price).map(({ price, choice }) => this.pool(choice, price));
  }

  /** The price and the target of every option of a feature, the first to let it stay. */
  private options(name: string): { price: number[]; target: number[] } {
    const { price, target } = this.moves.get(name)!;
    return { price: [0, ...price.map((p) => p + this.problem.perFeature)], target: [STAY, ...target] };
  }

  private pool(choice: Choice, price: number): FormFront {
    const { model, sign } = this.problem;
    const { pool } = model.form;
    const parts: Front[] = [];
    const steps: Step[][] = [];
    let total: Front = { cost: [0], score: [pool.kind === "layer" ? pool.intercept : 0], history: [] };
    model.parts.forEach((part, k) => {
      const ownSign = part.weight >= 0 ? sign : -sign;
      const own = this.part(k, part, ownSign, choice);
      let front = own.front;
      if (pool.kind !== "alone") {
        const risks = front.score.map((score) => valueOf(part.part.link, score));
        const keep = pareto(
          front.cost,
          risks.map((risk) => ownSign * risk),
        );
        front = restricted(front, keep);
        const added = keep.map((state) => part.weight * risks[state]);
        total = addOptions(total, front.cost, added, sign);
      }
      parts.push(front);
      steps.push(own.steps);
    });
    if (pool.kind === "alone") total = { cost: parts[0].cost, score: parts[0].score, history: [] };
    const link = lastLink(model.form);
    const risk = total.score.map((score) => (link === null ? Math.min(score, 1) : valueOf(link, score)));
    const cost = total.cost.map((c) => c + price);
    return new FormFront(cost, risk, total, parts, steps, choice);
  }

  /** The front of one part's score, and the features and targets behind every step. */
  private part(k: number, part: ReadyPart, sign: number, choice: Choice): { front: Front; steps: Step[] } {
    if (part.part.kind === "trees") return this.trees(part, part.part, sign, choice);
    let front: Front = { cost: [0], score: [part.part.intercept], history: [] };
    const steps: Step[] = [];
    const paired = new Set(part.pairs.flatMap((pair) => pair.features));
    for (const { name, shape } of part.terms) {
      if (shape.kind === "pair" || paired.has(name)) continue;
      const { cost, target, score } = this.feature(k, name, choice);
      if (cost.length === 1) {
        front = { ...front, score: front.score.map((s) => s + score[0]) };
        continue;
      }
      const keep = pareto(
        cost,
        score.map((s) => sign * s),
      );
      front = addOptions(front, pick(cost, keep), pick(score, keep), sign);
      steps.push({ features: [name], targets: keep.map((o) => [target[o]]) });
    }
    for (const joint of this.joint(k, part, sign, choice)) {
      front = addOptions(front, joint.cost, joint.score, sign);
      steps.push({ features: joint.features, targets: joint.choice });
    }
    return { front, steps };
  }

  /** The prices and targets of the options of a feature, and what they add to a part by themselves. */
  private feature(k: number, name: string, choice: Choice): { cost: number[]; target: number[]; score: number[] } {
    const target = this.problem.targets.get(name);
    const chosen = choice.get(name);
    const stay =
      chosen === undefined ? (this.applicant.terms[k].get(name) ?? 0) : target!.scores.get(k)![chosen];
    if (!this.moves.has(name) || this.problem.shared.has(name)) return { cost: [0], target: [STAY], score: [stay] };
    const options = this.options(name);
    const moved = options.target.slice(1).map((t) => target!.scores.get(k)![t]);
    return { cost: options.price, target: options.target, score: [stay, ...moved] };
  }

  private joint(k: number, part: ReadyPart, sign: number, choice: Choice): JointOptions[] {
    const found = new Map<string, Options>();
    for (const name of new Set(part.pairs.flatMap((pair) => pair.features))) {
      const { cost, target, score } = this.feature(k, name, choice);
      const levels = new Map<number, number[]>();
      part.pairs.forEach((pair, j) => {
        const axis = pair.features.indexOf(name) as -1 | 0 | 1;
        if (axis < 0) return;
        const known = this.problem.targets.get(name)?.pairLevels.get(`${k},${j}`);
        const chosen = choice.get(name);
        const stay = chosen === undefined ? this.applicant.pairLevels[k][j][axis as 0 | 1] : known![chosen];
        levels.set(j, [stay, ...target.slice(1).map((t) => known![t])]);
      });
      found.set(name, { cost, score, choice: target, levels });
    }
    return jointOptions(found, part.pairs, sign);
  }

  /** The front of a part of trees, by scoring all combinations of its moves. */
  private trees(
    ready: ReadyPart,
    part: TreePart,
    sign: number,
    choice: Choice,
  ): { front: Front; steps: Step[] } {
    const names = ready.features.filter((name) => this.moves.has(name) && !this.problem.shared.has(name));
    const options = names.map((name) => this.options(name));
    const total = options.reduce((product, { price }) => product * price.length, 1);
    checkStates(total, MOST_COMBINATIONS);
    // What the trees read, by input and option of its feature.
    const inputs = part.inputs.map((input) => {
      const at = names.indexOf(input.feature);
      const values = this.values(input.feature, choice, at < 0 ? [] : options[at].target.slice(1));
      return { at, numbers: values.map((value) => treeInput(input, one(input.feature, value))) };
    });
    const cost = new Float64Array(total);
    const score = new Float64Array(total);
    const taken = new Array<number>(names.length).fill(0);
    const read = new Array<number>(inputs.length);
    for (let state = 0; state < total; state++) {
      taken.forEach((option, j) => (cost[state] += options[j].price[option]));
      inputs.forEach(({ at, numbers }, i) => (read[i] = numbers[at < 0 ? 0 : taken[at]]));
      let sum = part.intercept;
      for (const tree of part.trees) sum += leafValue(tree, read);
      score[state] = sum;
      for (let j = names.length - 1; j >= 0 && ++taken[j] === options[j].price.length; j--) taken[j] = 0;
    }
    const keep = pareto(
      cost,
      score.map((s) => sign * s),
    );
    // The steps of this front are not taken one after the other: each holds its option of every state.
    let stride = total;
    const history = options.map(({ price }) => {
      stride /= price.length;
      const own = stride;
      return {
        parents: keep.map((_, k) => k),
        options: keep.map((state) => Math.floor(state / own) % price.length),
      };
    });
    const steps = names.map((name, j) => ({ features: [name], targets: options[j].target.map((t) => [t]) }));
    return { front: { cost: keep.map((s) => cost[s]), score: keep.map((s) => score[s]), history }, steps };
  }

  /** The value of a feature that stays as it is, or as it was chosen, and its values at the targets. */
  private values(name: string, choice: Choice, targets: number[]): Value[] {
    const open = this.problem.targets.get(name);
    const chosen = choice.get(name);
    const stay = chosen === undefined ? (this.applicant.row[name] ?? null) : open!.values[chosen];
    return [stay, ...targets.map((t) => open!.values[t])];
  }
}

function one(name: string, value: Value): Row {
  const row = Object.create(null) as Row;
  row[name] = value;
  return row;
}
