/** Receipts of decisions, checked with the browser's own cryptography: as docs/reference/signatures.md says. */

import { isMissing } from "./levels";
import { labelOf } from "./numbers";
import { reasons, refused } from "./reasons";
import { risk } from "./score";
import type { Model, Row, Value } from "./types";

const ROUNDING = 1e-9; // between machines

export interface ReceiptCheck {
  name: string;
  holds: boolean;
  detail: string;
}

interface Receipt {
  receipt: {
    time: string;
    model: string;
    outcome: string;
    probability: number;
    cutoff: number;
    decision: string;
    reasons: { feature: string; words: string }[];
    inputs: string[];
    salt_sha256: string;
  };
  signature: { algorithm: string; key: string; value: string };
  salt?: string;
}

/** Whether the browser lets this page use its cryptography. */
export const canCheckReceipts = (): boolean => globalThis.crypto?.subtle !== undefined;

/** Checks a receipt against a public key, a model and the applicant shown; throws where a text is none of the kind. */
export async function checkReceipt(text: string, pem: string, model: Model, row: Row): Promise<ReceiptCheck[]> {
  const found = readReceipt(text);
  const { receipt, signature, salt } = found;
  const own = await keyOf(pem);
  const signed = await isSigned(found, own.key);
  const salted = salt === undefined || (await sha256(canonical(salt))) === receipt.salt_sha256;
  const holds = signed && salted && signature.key === own.id;
  const which = `the key ${own.id.slice(0, 12)}`;
  const checks = [
    {
      name: "Signature",
      holds,
      detail: holds ? `as ${which} signed it on ${receipt.time}` : `changed, damaged, or not by ${which}`,
    },
  ];
  // What is not signed is not to be read any further.
  if (!holds) return checks;
  const same = receipt.model === model.info.form_sha256;
  checks.push({ name: "Model", holds: same, detail: same ? "the model of this page" : "another model than that of this page" });
  if (salt !== undefined) checks.push(await inputsCheck(found, salt, model, row));
  if (same && checks.every((check) => check.holds) && salt !== undefined) checks.push(decidedAgain(receipt, model, row));
  return checks;
}

function readReceipt(text: string): Receipt {
  let found: Receipt | null = null;
  try {
    found = JSON.parse(text) as Receipt;
  } catch {
    // Said below.
  }
  const { receipt, signature, salt } = found ?? {};
  const whole =
    receipt && signature?.algorithm === "ES256" && typeof signature.value === "string" && Array.isArray(receipt.inputs);
  if (!whole || !Array.isArray(receipt.reasons) || (salt !== undefined && typeof salt !== "string")) {
    throw new Error("The first file is no receipt.");
  }
  return found!;
}

async function keyOf(pem: string): Promise<{ key: CryptoKey; id: string }> {
  const coded = /-----BEGIN PUBLIC KEY-----([\s\S]*?)-----END PUBLIC KEY-----/.exec(pem)?.[1].replace(/\s/g, "") ?? "";
  const lines = coded.match(/.{1,64}/g) ?? [];
  const id = await sha256(`-----BEGIN PUBLIC KEY-----\n${lines.join("\n")}\n-----END PUBLIC KEY-----\n`);
  try {
    const kind = { name: "ECDSA", namedCurve: "P-256" };
    return { key: await crypto.subtle.importKey("spki", fromBase64(coded), kind, false, ["verify"]), id };
  } catch {
    throw new Error("The second file is no public key on the curve P-256.");
  }
}

async function isSigned({ receipt, signature }: Receipt, key: CryptoKey): Promise<boolean> {
  try {
    const kind = { name: "ECDSA", hash: "SHA-256" };
    return await crypto.subtle.verify(kind, key, fromBase64(signature.value), bytesOf(canonical(receipt)));
  } catch {
    return false; // not base64
  }
}

async function inputsCheck({ receipt }: Receipt, salt: string, model: Model, row: Row): Promise<ReceiptCheck> {
  const hashes = await Promise.all(
    model.features.map(async (name) => sha256(canonical([await saltOf(salt, name), name, textOf(model, name, row[name])]))),
  );
  const known = new Set(receipt.inputs);
  const n = hashes.filter((hash) => known.has(hash)).length;
  const holds = n === hashes.length && n === receipt.inputs.length;
  return {
    name: "Applicant",
    holds,
    detail: holds
      ? `all ${n} values of this applicant are those that the decision was made on`
      : `${n} of ${receipt.inputs.length} values are those that the decision was made on: enter the applicant first`,
  };
}

function decidedAgain(receipt: Receipt["receipt"], model: Model, row: Row): ReceiptCheck {
  const probability = risk(model, row);
  const turnedDown = refused(model, probability, receipt.cutoff);
  const said = turnedDown ? reasons(model, row).reasons.map((r) => [r.feature, r.text]) : [];
  const holds =
    Math.abs(probability - receipt.probability) <= ROUNDING &&
    receipt.cutoff === model.info.ranking.cutoff &&
    receipt.decision === (turnedDown ? "refused" : "approved") &&
    canonical(said) === canonical(receipt.reasons.map((r) => [r.feature, r.words]));
  return {
    name: "Decision",
    holds,
    detail: holds ? "this page gives the same probability, decision and reasons" : "this page gives something else",
  };
}

// ---- texts, bytes and hashes

/** An input as it is committed to. */
function textOf(model: Model, name: string, value: Value | undefined): string | null {
  if (isMissing(value)) return null;
  return model.schema.features?.[name].kind === "categorical" ? labelOf(value!) : canonical(Number(value));
}

/** Canonical JSON of RFC 8785, which takes numbers and texts as JavaScript writes them. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(",")}}`;
}

const bytesOf = (text: string) => new TextEncoder().encode(text);
const fromBase64 = (text: string) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const hex = (bytes: ArrayBuffer) => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const sha256 = async (text: string) => hex(await crypto.subtle.digest("SHA-256", bytesOf(text)));

async function saltOf(salt: string, feature: string): Promise<string> {
  const kind = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", bytesOf(salt), kind, false, ["sign"]);
  return hex(await crypto.subtle.sign("HMAC", key, bytesOf(feature)));
}
