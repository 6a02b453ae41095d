// Answers for rows by the script of the page itself: reads {page, payload, rows, cutoff, reference} from stdin.
import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";

const asked = JSON.parse(readFileSync(0, "utf8"));
const script = asked.page.slice(asked.page.lastIndexOf("<script>") + "<script>".length, asked.page.lastIndexOf("</script>"));
runInThisContext(script);

const engine = globalThis.plainrisk;
const model = engine.prepare(asked.payload);
const reference = asked.reference ?? undefined;
const attempt = (work) => {
  try {
    return work();
  } catch (error) {
    return { error: error.name };
  }
};
const answers = asked.rows.map((row) => ({
  risk: attempt(() => engine.risk(model, row)),
  explanation: attempt(() => engine.explain(model, row, reference)),
  reasons: attempt(() => engine.reasons(model, row, 4)),
}));
const whatIfs = asked.rows
  .slice(0, asked.what_ifs)
  .map((row) => attempt(() => engine.whatIf(model, row, asked.cutoff, asked.options)));
const pasted = (asked.texts ?? []).map((text) => engine.parseRow(model, text));
process.stdout.write(JSON.stringify({ answers, whatIfs, pasted }));
