/** Pareto fronts of (cost, score), and joint options of features that pairs connect: as explain/elimination.py. */

const MOST_STATES = 2_000_000;

/** A search that would look at too many states. */
export class SearchError extends Error {
  override name = "SearchError";
}

export function checkStates(n: number, most = MOST_STATES): void {
  if (n > most) throw new SearchError("There are too many combinations to search. Keep some features as they are.");
}

/** The states no other of their group is better than: by rising cost, each with a lower score than before. */
export function pareto(cost: ArrayLike<number>, score: ArrayLike<number>, group?: ArrayLike<number>): number[] {
  const order = Array.from({ length: cost.length }, (_, k) => k);
  if (group) order.sort((a, b) => group[a] - group[b] || cost[a] - cost[b] || score[a] - score[b] || a - b);
  else order.sort((a, b) => cost[a] - cost[b] || score[a] - score[b] || a - b);
  const kept: number[] = [];
  let least = Infinity;
  order.forEach((k, n) => {
    if (n === 0 || (group && group[k] !== group[order[n - 1]]) || score[k] < least) {
      kept.push(k);
      least = score[k];
    }
  });
  return kept;
}

/** What one feature can do; one entry per option. */
export interface Options {
  cost: number[];
  score: number[];
  choice: number[];
  /** By the number of each of the feature's pairs, the level of the option there. */
  levels: Map<number, number[]>;
}

/** The Pareto-optimal combinations of the options of some features. */
export interface JointOptions {
  features: string[];
  cost: number[];
  score: number[];
  /** The options of every combination, one per feature. */
  choice: number[][];
}

export interface PairScores {
  features: [string, string];
  scores: number[][];
}

/** Numbers the options by their levels in all pairs, from the first. */
function signature({ levels, cost }: Options): number[] {
  const numbers = new Map<string, number>();
  return cost.map((_, option) => {
    const key = [...levels.values()].map((level) => level[option]).join(",");
    if (!numbers.has(key)) numbers.set(key, numbers.size);
    return numbers.get(key)!;
  });
}

const pick = <T>(list: T[], keep: number[]): T[] => keep.map((k) => list[k]);

const timesSign = (sign: number, list: number[]) => list.map((x) => sign * x);

/** The best combinations, separately for each set of features that pairs connect. */
export function jointOptions(features: Map<string, Options>, pairs: PairScores[], sign: number): JointOptions[] {
  const best = new Map<string, Options>();
  for (const [name, own] of features) {
    const keep = pareto(own.cost, timesSign(sign, own.score), signature(own)).sort((a, b) => a - b);
    const levels = new Map([...own.levels].map(([k, level]) => [k, pick(level, keep)]));
    best.set(name, { cost: pick(own.cost, keep), score: pick(own.score, keep), choice: pick(own.choice, keep), levels });
  }
  return connected([...features.keys()], pairs).map((names) =>
    joint(new Map(names.map((name) => [name, best.get(name)!])), pairs, sign),
  );
}

/** The sets of features that pairs connect, directly or through others. */
function connected(names: string[], pairs: PairScores[]): string[][] {
  const home = new Map(names.map((name) => [name, [name]]));
  for (const { features } of pairs) {
    const [u, v] = features.map((name) => home.get(name)!);
    if (u === v) continue;
    const both = [...u, ...v];
    for (const name of both) home.set(name, both);
  }
  return [...new Set(home.values())];
}

function joint(features: Map<string, Options>, pairs: PairScores[], sign: number): JointOptions {
  const signatures = new Map([...features].map(([name, own]) => [name, signature(own)]));
  const sizes = new Map([...signatures].map(([name, own]) => [name, Math.max(...own) + 1]));
  let cost = [0];
  let score = [0];
  let taken = new Map<string, number[]>(); // by feature, the option of every state
  for (const [name, stillOpen] of orderOf(sizes, pairs)) {
    const own = features.get(name)!;
    const m = own.cost.length;
    const n = cost.length * m;
    checkStates(n);
    const parent = Array.from({ length: n }, (_, k) => Math.floor(k / m));
    const option = Array.from({ length: n }, (_, k) => k % m);
    cost = parent.map((p, k) => cost[p] + own.cost[option[k]]);
    score = parent.map((p, k) => score[p] + own.score[option[k]]);
    taken = new Map([...taken].map(([other, list]) => [other, pick(list, parent)]));
    taken.set(name, option);
    pairs.forEach(({ features: [u, v], scores }, k) => {
      if ((name !== u && name !== v) || !taken.has(u) || !taken.has(v)) return;
      const [first, second] = [features.get(u)!.levels.get(k)!, features.get(v)!.levels.get(k)!];
      const [atU, atV] = [taken.get(u)!, taken.get(v)!];
      for (let s = 0; s < n; s++) score[s] += scores[first[atU[s]]][second[atV[s]]];
    });
    const group = new Array<number>(n).fill(0);
    for (const other of stillOpen) {
      const [own, list, size] = [signatures.get(other)!, taken.get(other)!, sizes.get(other)!];
      for (let s = 0; s < n; s++) group[s] = group[s] * size + own[list[s]];
    }
    const keep = pareto(cost, timesSign(sign, score), group);
    [cost, score] = [pick(cost, keep), pick(score, keep)];
    taken = new Map([...taken].map(([other, list]) => [other, pick(list, keep)]));
  }
  const names = [...taken.keys()];
  const choice = cost.map((_, s) => names.map((name) => features.get(name)!.choice[taken.get(name)![s]]));
  return { features: names, cost, score, choice };
}

/** The features in an order that leaves few combinations open, each with those that are open after it. */
function orderOf(sizes: Map<string, number>, pairs: PairScores[]): Map<string, string[]> {
  const near = new Map([...sizes.keys()].map((name) => [name, new Set<string>()]));
  for (const { features } of pairs) {
    const [u, v] = features;
    near.get(u)?.add(v);
    near.get(v)?.add(u);
  }
  const openAfter = (done: string[]) => done.filter((n) => [...near.get(n)!].some((other) => !done.includes(other)));
  const found = new Map<string, string[]>();
  while (found.size < sizes.size) {
    let least = Infinity;
    let next: [string, string[]] | null = null;
    for (const name of sizes.keys()) {
      if (found.has(name)) continue;
      const open = openAfter([...found.keys(), name]);
      const states = open.reduce((product, other) => product * sizes.get(other)!, 1);
      if (next === null || states < least) [least, next] = [states, [name, open]];
    }
    found.set(...next!);
  }
  return found;
}
