/** The page's arithmetic: the same answers as Python's, from the same form. */

export { labels, levelCount, RowError } from "./levels";
export { general, labelOf } from "./numbers";
export { prepare, risk } from "./score";
export type * from "./types";
