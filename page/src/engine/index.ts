/** The page's arithmetic: the same answers as Python's, from the same form. */

export { beyond } from "./beyond";
export { certify } from "./certify";
export { explain, formula } from "./contributions";
export { SearchError } from "./elimination";
export { RowError } from "./levels";
export { labelOf } from "./numbers";
export { reasons, refused } from "./reasons";
export { canCheckReceipts, canonical, checkReceipt, type ReceiptCheck } from "./receipt";
export { parseRow } from "./rows";
export { lastLink, prepare, risk } from "./score";
export type * from "./types";
export { whatIf } from "./whatif";
