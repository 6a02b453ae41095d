/** Links, from a score to a probability: as form/links.py. */

import { bisectRight, clip } from "./numbers";
import type { Link } from "./types";

export interface Bands {
  kind: "bands";
  knots: number[];
  values: number[];
}

const ratesKnown = new WeakMap<Bands, number[]>();

/** The slope of each band. */
function rates(link: Bands): number[] {
  let found = ratesKnown.get(link);
  if (!found) {
    const { knots, values } = link;
    found = values.slice(1).map((value, k) => (value - values[k]) / (knots[k + 1] - knots[k]));
    ratesKnown.set(link, found);
  }
  return found;
}

/** The band a score lies in, from 0. */
export function bandOf(link: Bands, score: number): number {
  return bisectRight(link.knots.slice(1, -1), score);
}

/** The probability. */
export function valueOf(link: Link, score: number): number {
  if (link.kind === "logistic") return 1 / (Math.exp(Math.min(-score, 700)) + 1);
  if (link.kind === "linear") return clip(link.offset + link.slope * score, link.low, link.high);
  const band = bandOf(link, score);
  const last = link.values.length - 2;
  const floor = band === 0 ? 0 : link.values[band];
  const top = band === last ? 1 : link.values[band + 1];
  return clip(link.values[band] + rates(link)[band] * (score - link.knots[band]), floor, top);
}

/** Offset and slope of the straight piece a score lies on; null where the link is curved. */
export function lineOf(link: Link, score: number): [number, number] | null {
  if (link.kind === "logistic") return null;
  if (link.kind === "linear") return [link.offset, link.slope];
  const band = bandOf(link, score);
  const rate = rates(link)[band];
  return [link.values[band] - rate * link.knots[band], rate];
}

/** The slope: 0 where a line is clipped. */
export function slopeOf(link: Link, score: number): number {
  const piece = lineOf(link, score);
  if (piece === null) {
    const small = Math.exp(-Math.abs(score));
    return small / (1 + small) ** 2;
  }
  const line = piece[0] + piece[1] * score;
  const [low, high] = link.kind === "linear" ? [link.low, link.high] : [0, 1];
  return line < low || line > high ? 0 : piece[1];
}

/** The mean slope of a link between two scores: explain/contributions.py. */
export function meanRate(link: Link, start: number, score: number): number {
  const run = score - start;
  const rise = valueOf(link, score) - valueOf(link, start);
  if (link.kind === "logistic") return Math.abs(run) < 1e-5 ? slopeOf(link, (start + score) / 2) : rise / run;
  const slope = slopeOf(link, score);
  const oneLine = lineOf(link, start)![0] === lineOf(link, score)![0];
  const straight = oneLine && slope === slopeOf(link, start) && (slope > 0 || rise === 0);
  return straight ? slope : rise / run;
}
