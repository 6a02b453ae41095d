// Answers by the script of the page itself, as it is shipped: reads a question as JSON from stdin.
import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";

const asked = JSON.parse(readFileSync(0, "utf8"));
const [from, to] = [asked.page.lastIndexOf("<script>") + "<script>".length, asked.page.lastIndexOf("</script>")];
runInThisContext(asked.page.slice(from, to));

const engine = globalThis.plainrisk;
const model = engine.prepare(asked.payload);
const attempt = (work) => {
  try {
    return work();
  } catch (error) {
    return { error: error.name, message: error.message };
  }
};
const answers = asked.rows.map((row) => ({
  risk: attempt(() => engine.risk(model, row)),
  explanation: attempt(() => engine.explain(model, row, asked.reference)),
  reasons: attempt(() => engine.reasons(model, row, 4)),
}));
const whatIfs = asked.rows
  .slice(0, asked.what_ifs ?? 0)
  .map((row) => attempt(() => engine.whatIf(model, row, asked.cutoff, asked.options)));
const pasted = (asked.texts ?? []).map((text) => engine.parseRow(model, text));
const numbers = (asked.numbers ?? []).map((x) => [engine.general(x), engine.general(x, 12), engine.labelOf(x)]);
process.stdout.write(JSON.stringify({ answers, whatIfs, pasted, numbers }));
