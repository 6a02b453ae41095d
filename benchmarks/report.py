"""Results in words: progress lines, Markdown tables, and the files of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import growth, plots, targets
from benchmarks.adapters import METHODS
from benchmarks.plan import CV_LIMIT, DENSE_LIMIT, REAL, SHAPES
from benchmarks.results import Results, Row
from benchmarks.targets import SCORE

INTRO = """# Benchmarks

Made by `{command}`. Every method runs in a fresh process with {on_threads}; seconds are the best of {repeats}
(once where a run takes over 30 s), after a warm-up on 500 rows (none for EBM, SLSQP and pyGAM, which take long even
then). What takes little goes on for a second; the claims are told by the best of that, too. A fit starts from raw rows:
a polars frame for plainrisk and for the methods that work on its bins, pandas for optbinning, and for the others a
matrix in which words are already numbers, made outside the clock in their favour.
"(matrix)" is plainrisk from that same matrix. Memory is the peak during the first fit beyond what the process held
before it, with the processes that it started. glum, SLSQP and scikit-learn LR run with one BLAS thread and with all in
turn, and the faster counts.

Time-outs are at {timeout:.0f} s. Left out by rule: methods on shapes larger than one on which they were not done in
time; indicator matrices of more than {dense:.0f} GB; ten folds where one fit takes over {cv:.0f} s; pyGAM beyond S1;
on S5 all but plainrisk and boosted trees. All are listed below with their reasons. Read ratios, not seconds.
Rows are kept as they are measured, so a table may join several runs on one machine.
"""


def brief(row: Row) -> str:
    """Return a row in a few words."""
    if "seconds" not in row:
        return str(row.get("error", "nothing measured"))
    said = [f"{row['seconds']:.4g} s"]
    said += [f"{row['peak_mb']:.0f} MB"] if "peak_mb" in row else []
    said += [f"one row {row['latency_us']:.0f} us"] if "latency_us" in row else []
    said += [f"({row['note']})"] if "note" in row else []
    return ", ".join(said)


def write(folder: Path, growth_page: Path, about: dict[str, Any], rows: Sequence[Row]) -> list[Path]:
    """Write the page, the plots and the page on growth; return their paths."""
    results = Results(rows).at_first()
    written = plots.draw(folder, results)
    page = folder / "README.md"
    page.write_text(text(about, Results(rows), [p.name for p in written if p.suffix == ".svg"]))
    written.append(page)
    if results.part("growth"):
        growth_page.parent.mkdir(parents=True, exist_ok=True)
        growth_page.write_text(growth.page(results, about))
        written.append(growth_page)
    return written


def text(about: dict[str, Any], results: Results, figures: Sequence[str]) -> str:
    """Return the whole page; claims and tables are of the first runs, as many as were asked for."""
    steady, results = results, results.at_first()
    sections = [
        INTRO.format(**about, on_threads=_threads(about), dense=DENSE_LIMIT, cv=CV_LIMIT),
        _machine(about),
        _claims(results, steady),
        _shapes(results),
        *_fit_tables(results),
        _folds(results),
        _scoring(results),
        _imports(results),
        _methods(results),
        _not_done(results),
        "\n".join(f"![{name}]({name})" for name in figures),
    ]
    return "\n\n".join(s for s in sections if s) + "\n"


def _claims(results: Results, steady: Results) -> str:
    said = f"## What must be shown\n\n{targets.table(targets.findings(results))}"
    if not any("seconds_at_first" in row for row in steady.rows):
        return said
    found = targets.findings(steady)
    missed = [f for f in found if f.verdict != "met"]
    which = "".join(f"\n- {f.claim}: {f.measured or f.verdict}" for f in missed)
    without = f", all but{which}" if missed else "."
    met = f"{len(found) - len(missed)} of {len(found)}"
    return f"{said}\n\nBy the best of all runs a second had room for, which is less noisy: {met}{without}"


def _threads(about: dict[str, Any]) -> str:
    return "one thread" if about["threads"] == 1 else f"{about['threads']} threads"


def _machine(about: dict[str, Any]) -> str:
    machine = about["machine"]
    versions = ", ".join(f"{n} {v}" for n, v in machine["versions"].items() if v)
    scale = "" if about["scale"] == 1 else f" **A trial at {about['scale']:g} of the rows.**"
    return (
        f"Measured on {machine['cores']} cores ({machine['processor']}), {machine['memory_gb']} GB, "
        f"{machine['system']}, Python {machine['python']}; {versions}.{scale}"
    )


def _shapes(results: Results) -> str:
    known = {**SHAPES, **REAL}
    said = [f"{s} {known[s][0]:,} x {known[s][1]}" for s in results.shapes()]
    return f"Shapes: {', '.join(said)}." if said else ""


def _grid(
    results: Results, part: str, shapes: Sequence[str], cell: Callable[[str, str], str], *, skip_empty: bool = False
) -> str:
    """Return a table of methods by shapes."""
    lines = ["| | " + " | ".join(shapes) + " |", "| --- " * (len(shapes) + 1) + "|"]
    for method in results.methods(part):
        cells = [cell(shape, method) for shape in shapes]
        if any(cells) or not skip_empty:
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _fit_tables(results: Results) -> list[str]:
    shapes = results.shapes()
    if not shapes:
        return []

    def number(field: str, spec: str) -> Callable[[str, str], str]:
        def cell(shape: str, method: str) -> str:
            found = results.value("fit", shape, method, field)
            return "" if found is None else format(found, spec)

        return cell

    def seconds(shape: str, method: str) -> str:
        found, bound = results.at_least("fit", shape, method)
        if found is None:
            return "-" if results.row("fit", shape, method) else ""
        return f"> {found:.0f}" if bound else f"{found:.3g}"

    def ratio(shape: str, method: str) -> str:
        found, bound = results.at_least("fit", shape, method)
        base = results.value("fit", shape, "ARM1")
        return f"{'> ' if bound else ''}{found / base:.2f}" if found and base else ""

    def gap(shape: str, method: str) -> str:
        found, base = (results.value("fit", shape, m, "objective") for m in (method, "ARM1"))
        return "" if found is None or base is None or method == "ARM1" else f"{found - base:+.1e}"

    parts: list[tuple[str, Callable[[str, str], str]]] = [
        ("Seconds of one fit", seconds),
        ("The same as multiples of ARM1", ratio),
        ("Peak MB beyond the data", number("peak_mb", ".0f")),
        ("AUC on the training rows", number("auc", ".4f")),
        ("Objective less ARM1's (scikit-learn has no bounds and may go below)", gap),
        ("KKT residual", number("kkt", ".0e")),
        ("Bytes of the model file", number("bytes", ",.0f")),
    ]
    return [f"## {title}\n\n{_grid(results, 'fit', shapes, cell, skip_empty=True)}" for title, cell in parts]


def _folds(results: Results) -> str:
    shapes = results.shapes("cv")
    if not shapes:
        return ""

    def cell(shape: str, method: str) -> str:
        ten, bound = results.at_least("cv", shape, method)
        one = results.value("fit", shape, method)
        if ten is None:
            return "-" if results.row("cv", shape, method) else ""
        times = f" ({ten / one:.1f} fits)" if one else ""
        return f"{'> ' if bound else ''}{ten:.3g}{times}"

    return f"## Seconds of ten folds, and as multiples of one fit\n\n{_grid(results, 'cv', shapes, cell)}"


def _scoring(results: Results) -> str:
    rows = [results.row("score", SCORE, m) for m in results.methods("score")]
    if not rows:
        return ""
    base = results.value("score", SCORE, "ARM1")
    lines = [
        "| | million rows/s | numpy passes | times ARM1 | explained rows/s | one row, us | model file, bytes |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        if "seconds" not in row:
            lines.append(f"| {row['method']} | {row.get('error', '')} | | | | | |")
            continue
        explained = f"{row['explain_rows'] / row['explain_seconds']:,.0f}" if "explain_rows" in row else ""
        cells = [
            f"{row['rows'] / row['seconds'] / 1e6:.2f}",
            f"{row['seconds'] / row['pass_seconds']:.1f}",
            f"{row['seconds'] / base:.2f}" if base else "",
            explained,
            f"{row['latency_us']:,.0f}" if "latency_us" in row else "",
            f"{row['bytes']:,}",
        ]
        lines.append(f"| {row['method']} | " + " | ".join(cells) + " |")
    return (
        "## Scoring 1M x 30\n\nFitted on 20,000 rows. One numpy pass is `X.sum()` over the float64 matrix in the same "
        "process. A single row is a dict for plainrisk, one row of the matrix on one thread for the others.\n\n"
        + "\n".join(lines)
    )


def _imports(results: Results) -> str:
    rows = results.part("import")
    if not rows:
        return ""
    base = results.value("import", "import", "sklearn")
    lines = ["| import | seconds | times scikit-learn |", "| --- | --- | --- |"]
    for row in rows:
        seconds = row.get("seconds")
        times = f"{seconds / base:.2f}" if seconds and base else ""
        lines.append(f"| {row['method']} | {row.get('error') or format(seconds, '.3f')} | {times} |")
    return "## Import\n\n" + "\n".join(lines)


def _methods(results: Results) -> str:
    names = [m for m in METHODS if m in {*results.methods("fit"), *results.methods("score")}]
    return "## Methods\n\n" + "\n".join(f"- {m}: {METHODS[m].says}" for m in names) if names else ""


def _not_done(results: Results) -> str:
    said = [
        f"- {r['part']}, {r['at']}, {r['method']}: {r.get('error') or r.get('note')}"
        for r in results.rows
        if r.get("error") or r.get("note")
    ]
    return "## Not done\n\n" + "\n".join(said) if said else ""
