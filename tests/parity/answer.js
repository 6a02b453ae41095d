// What the page says when it is asked: an expression, for Node and for browsers.
(engine, asked) => {
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
    formula: attempt(() => engine.formula(model, row)),
    reasons: attempt(() => engine.reasons(model, row)),
    refused: attempt(() => engine.refused(model, engine.risk(model, row), asked.cutoff)),
    beyond: attempt(() => engine.beyond(model, row)),
  }));
  const whatIfs = asked.rows
    .slice(0, asked.what_ifs ?? 0)
    .map((row) => attempt(() => engine.whatIf(model, row, asked.cutoff, asked.options)));
  const pasted = (asked.texts ?? []).map((text) => engine.parseRow(model, text));
  const numbers = (asked.numbers ?? []).map((x) => engine.labelOf(x));
  const canonical = engine.canonical(asked.canonical ?? null);
  return JSON.stringify({ answers, whatIfs, pasted, numbers, canonical });
}
