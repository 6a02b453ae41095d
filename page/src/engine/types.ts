/** The risk form as it stands in a model file, and the payload of the page. Names are those of Python. */

export type Value = number | string | null;
export type Row = Record<string, Value>;

// ---- the form

export interface Bins {
  kind: "bins";
  edges: number[];
  special_values: number[];
  lower_bound: number | null;
}

export interface Categories {
  kind: "categories";
  categories: string[];
  n_ordered: number;
  /** Further labels of a category, by its name. */
  groups?: Record<string, string[]>;
}

export type Levels = Bins | Categories;

interface Counted {
  scores: number[];
  weights: number[];
  positives: number[];
}

export interface Table extends Counted {
  kind: "table";
  levels: Levels;
}

export interface Line extends Counted {
  kind: "line";
  slope: number;
  center: number;
  levels: Bins;
}

export interface Curve extends Counted {
  kind: "curve";
  breaks: number[];
  coefficients: number[][];
  levels: Bins;
}

export type Shape = Table | Line | Curve;

export interface PairTable {
  kind: "pair";
  features: [string, string];
  levels: [Levels, Levels];
  scores: number[][];
  weights: number[][];
  positives: number[][];
}

export type Link =
  | { kind: "logistic" }
  | { kind: "linear"; slope: number; offset: number; low: number; high: number }
  | { kind: "bands"; knots: number[]; values: number[] };

export interface Part {
  kind: "additive";
  name: string;
  intercept: number;
  shapes: Record<string, Shape>;
  link: Link;
  pairs?: PairTable[];
}

export interface TreeInput {
  feature: string;
  category: string | null;
  order: string[] | null;
  missing: number | null;
}

export interface Tree {
  inputs: number[];
  edges: number[];
  missing_left: boolean[];
  left: number[];
  right: number[];
  values: number[];
}

export interface TreePart {
  kind: "trees";
  name: string;
  intercept: number;
  inputs: TreeInput[];
  trees: Tree[];
  link: Link;
}

export type Pool =
  | { kind: "alone" }
  | { kind: "mixture"; weights: number[]; link?: Link }
  | { kind: "layer"; intercept: number; weights: number[]; link: Link };

export type Rule = "free" | "not_better" | "worst" | "neutral" | "error";

export interface Feature {
  kind?: "continuous" | "categorical";
  direction?: "increasing" | "decreasing" | "none";
  special_values?: (string | number)[];
  lower_bound?: number | null;
  /** What an empty field may do, what special values may, and what values below the bound may. */
  missing?: Rule | null;
  special_rules?: Record<string, Rule>;
  below_bound?: Rule | null;
  categories?: (string | number)[] | null;
  unseen?: "neutral" | "error";
  protected?: boolean;
  actionable?: "free" | "up" | "down" | "fixed";
  step_cost?: number;
  note?: string | null;
}

export interface Schema {
  target?: string | null;
  positive?: string | number | boolean | null;
  adverse?: "positive" | "negative";
  features?: Record<string, Feature>;
  subscales?: Record<string, string[]>;
  policy?: { inquiries?: string[] };
}

export interface Form {
  schema: Schema;
  columns: string[];
  classes: [string | number | boolean, string | number | boolean];
  parts: (Part | TreePart)[];
  pool: Pool;
}

// ---- the payload

/** What an applicant is compared with: per part its score, what each term adds, and the shares of pairs' levels. */
export interface Reference {
  name: "typical" | "best" | "row";
  points: { score: number; terms: Record<string, number>; shares: Record<string, [number[], number[]]> }[];
}

/** How reasons are found, and who is refused: see form/ranking.py. */
export interface Ranking {
  reference: "typical" | "best";
  candidates: string[];
  subscales: string[];
  words: string[];
  base: number[];
  by_level: ({ levels: Levels; texts: number[] } | null)[];
  protected: boolean[];
  inquiries: boolean[];
  k: number;
  sign: 1 | -1;
  by_subscale: boolean;
  cutoff: number | null;
}

/** The table of one feature, or of a pair, in one part; one entry per level, of a pair row by row. */
export interface ShapeTable {
  /** A feature, or "u × v". */
  feature: string;
  features: string[];
  part: string;
  subscale: string;
  /** "table", "line", "curve" or "pair". */
  kind: "table" | "line" | "curve" | "pair";
  /** Of a pair those of the first feature, then those of the second: see `size`. */
  labels: string[];
  /** The same as people say it. */
  names: string[];
  /** Of a pair, how many levels each feature has. */
  size: [number, number] | null;
  n_ordered: number;
  ordered: boolean;
  rows: number[];
  bad: number[];
  bad_rate: (number | null)[];
  score: (number | null)[];
  /** Risk of the typical applicant with this level less the risk as is. */
  effect: (number | null)[] | null;
  /** Interval of the effect. */
  low: (number | null)[] | null;
  high: (number | null)[] | null;
  /** Of a line or a curve: values and effects to draw it by. */
  curve: { value: number; effect: number }[] | null;
  /** Points that a step to each level adds, by band: from the level before, or from the most frequent category. */
  steps: (string[] | null)[] | null;
  /** The bands in words; none if a step adds the same everywhere, or depends on the applicant. */
  bands: string[];
  /** Of a line: what one unit more adds, and for whom. */
  sentence: string | null;
  unit: string;
}

export interface Importance {
  subscale: string;
  feature: string | null;
  mean: number | null;
  span: number | null;
  unit: string;
}

/** How the page asks for one feature: the values an applicant may have. */
export interface Input {
  feature: string;
  /** What people call it, the unit of its numbers, and what they call some of its values. */
  label: string;
  unit: string | null;
  labels: Record<string, string>;
  protected: boolean;
  subscale: string;
  kind: "continuous" | "categorical";
  direction: "increasing" | "decreasing" | "none";
  /** Of a continuous feature: ends and step of the slider. */
  low: number | null;
  high: number | null;
  step: number | null;
  edges: number[];
  special_values: number[];
  special_names: string[];
  lower_bound: number | null;
  /** The least and the greatest measurement of training, where they are known. */
  range: [number, number] | null;
  categories: string[];
  category_names: string[];
  missing_name: string;
  /** The weight of the feature has left the model. */
  left: boolean;
}

/** A figure with its interval; null where there is nothing to tell it from. */
export interface Ranged {
  value: number | null;
  low: number | null;
  high: number | null;
}

export interface CalibrationBin {
  low: number;
  high: number;
  rows: number;
  predicted: number;
  observed: number;
  observed_low: number;
  observed_high: number;
}

/** What one cut-off does. Refused is a risk from the cut-off on; with adverse "negative", one below it. */
export interface Cutoff {
  cutoff: number;
  approved: number;
  approval_rate: number;
  /** Share of bad outcomes among the approved. */
  bad_rate: number | null;
  bad_rate_low: number | null;
  bad_rate_high: number | null;
  /** Share of the bad outcomes that are refused. */
  bad_refused: number | null;
  /** Share of the good outcomes that are refused. */
  good_refused: number | null;
}

/** Summaries of rows that were given; never a row. */
export interface DataSummary {
  rows: number;
  /** Rows with the positive outcome; null where outcomes are not known. */
  bad: number | null;
  mean_risk: number;
  histogram: { edges: number[]; rows: number[]; bad: number[] | null };
  /** auc, gini, ks, brier, log_loss, ece, gap, slope, intercept; empty without outcomes. */
  metrics: { name: string; label: string; value: number; low: number | null; high: number | null }[];
  /** What a reader of the metrics must know. */
  notes: string[];
  calibration: CalibrationBin[];
  cutoffs: Cutoff[];
  /** Against the training rows, as the form counts them. */
  drift: {
    unit: string;
    /** The stability index from which a shift is moderate, and large. */
    moderate: number;
    large: number;
    features: { feature: string; psi: number; shift: number | null }[];
  } | null;
  groups: {
    column: string;
    cutoff: number;
    /** The group that others are compared with. */
    reference: string;
    groups: {
      group: string;
      rows: number;
      /** So few rows, or so few of one outcome, that the figures say little. */
      small: boolean;
      mean_risk: number;
      base_rate: Ranged;
      auc: Ranged;
      approval: Ranged;
      /** Approval rate over that of the reference group. */
      impact: Ranged;
      /** Approval rate among applicants with the good outcome. */
      opportunity: Ranged;
    }[];
  } | null;
}

export interface ModelPayload {
  name: string;
  form: Form;
  /** Names in their order, which objects in JavaScript do not keep for names such as "10". */
  order: { features: string[]; subscales: string[]; shapes: string[][] };
  form_sha256: string;
  /** Texts of the model file by name, such as owner or purpose. */
  about: Record<string, string>;
  fit: {
    estimator: string;
    parameters: Record<string, string>;
    rows: number;
    weight: number;
    positive_weight: number;
    base_rate: number;
    objective: number[];
    kkt: number[];
    iterations: number[];
    converged: boolean;
    reason: string;
    clipped: number;
    evidence: { features: string[]; kind: string; size: number; precision: number; edf: number; left: boolean }[];
    features_left: string[];
  } | null;
  certificate: {
    valid: boolean;
    checks: { name: string; holds: boolean; detail: string }[];
    notes: string[];
    /** What an empty or special field can do at most, in score and in probability. */
    outside: {
      feature: string;
      level: string;
      rule: Rule;
      rows: number;
      /** How far it can be below the best measured level. */
      below: number;
      below_risk: number;
      /** How far it can be below the worst measured level: what emptying a field can win. */
      lowers: number;
      lowers_risk: number;
    }[];
  };
  /** A row to start from, with the most frequent level of every feature. */
  typical: Row;
  references: { typical: Reference | null; best: Reference | null };
  ranking: Ranking;
  inputs: Input[];
  shapes: ShapeTable[];
  importance: Importance[];
  /** Of subscales; empty for a model of one part. */
  weights: Record<string, number>;
  data: DataSummary | null;
}

export interface Payload {
  format: 1;
  plainrisk: string;
  title: string;
  /** "positive": a high risk is bad for the applicant. */
  adverse: "positive" | "negative";
  /** What is predicted, to stand after "probability that". */
  outcome: string;
  cutoff: number;
  models: ModelPayload[];
  /** Rows of the data, there only if asked for. */
  applicants: { name: string; row: Row }[];
  /** Open at this view with this row, as notebooks do for an explanation. */
  start: { view: string; row: Row | null } | null;
}

// ---- results

/** A payload's model, ready to evaluate. */
export interface Model {
  payload: Payload;
  info: ModelPayload;
  form: Form;
  schema: Schema;
  /** The features the form reads, in the order of its parts. */
  features: string[];
  typical: Row;
  parts: ReadyPart[];
}

/** What one feature or pair adds to the score of its part. */
export interface ReadyTerm {
  name: string;
  features: string[];
  shape: Shape | PairTable;
  value(row: Row): number;
}

/** A part, prepared: its features with a shape come first, then those that only stand in pairs. */
export interface ReadyPart {
  part: Part | TreePart;
  name: string;
  weight: number;
  features: string[];
  terms: ReadyTerm[];
  pairs: PairTable[];
  score(row: Row): number;
}

export interface Term {
  /** A feature, or "u × v". */
  name: string;
  features: string[];
  /** Contribution in probability. */
  value: number;
}

/** The risk as a sum of terms: of a pool, weight times risk of every part; of a line, coefficient times value. */
export interface Formula {
  /** What everybody starts from; it may be outside 0 to 1. */
  start: number;
  terms: { name: string; features: string[]; own: number | null; value: number }[];
  /** All added up: the risk, where the line is not clipped. */
  total: number;
}

export interface Explanation {
  risk: number;
  referenceRisk: number;
  reference: "typical" | "best" | "row";
  parts: { name: string; total: number; terms: Term[] }[];
}

export interface Reason {
  feature: string;
  subscale: string;
  text: string;
  /** What it costs the applicant in probability, and what its subscale costs. */
  cost: number;
  subscaleCost: number;
}

export interface Found {
  reasons: Reason[];
  /** How many protected features cost more than the last reason. */
  withheld: number;
}

export interface Change {
  feature: string;
  from: Value;
  to: Value;
  cost: number;
}

export interface Answer {
  changes: Change[];
  risk: number;
  cost: number;
}

export interface WhatIf {
  reached: boolean;
  answers: Answer[];
  /** The best risk that allowed moves can reach, and the cheapest way there. */
  reachable: Answer;
}

export interface WhatIfOptions {
  /** Features that must stay. */
  frozen?: string[];
  answers?: number;
}
