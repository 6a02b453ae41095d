"""`plainrisk compare`: ranks, tests and the critical difference diagram."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plainrisk.cli import show, tables
from plainrisk.cli.options import Json
from plainrisk.data.reader import open_table
from plainrisk.errors import DataError, did_you_mean, warn

if TYPE_CHECKING:
    import polars as pl

    from plainrisk_lab.compare import Diagram

__all__ = ["compare"]

HIGHER = {"auc", "gini", "ks", "accuracy", "certainty"}
LOWER = {"ece", "mce", "brier", "log_loss", "seconds"}
DRAWN = (".svg", ".png", ".pdf", ".tex")


def compare(
    results: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS",
            help="Data sets in rows and classifiers in columns, or long: dataset, classifier, metric, value.",
            show_default=False,
        ),
    ],
    metric: Annotated[str, typer.Option("--metric", help="The metric of the values, or the one to select.")] = "auc",
    higher: Annotated[
        bool | None,
        typer.Option(
            "--higher/--lower", help="Whether higher or lower values are better; known for the usual metrics."
        ),
    ] = None,
    alpha: Annotated[float, typer.Option("--alpha", help="The level of the tests, over all pairs together.")] = 0.05,
    zero_method: Annotated[
        str,
        typer.Option("--zero-method", help="How data sets without a difference are ranked: pratt, zsplit or wilcox."),
    ] = "pratt",
    drop_incomplete: Annotated[
        bool, typer.Option("--drop-incomplete", help="Leave out data sets that lack a value.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Draw the diagram: .svg, .png, .pdf or .tex; or write the table of pairs: .csv, .xlsx, .md, .html, "
            ".json, .parquet, .jsonl or .csv.gz.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compare classifiers over data sets: average ranks, Friedman's test, all pairs, the diagram."""
    from plainrisk_lab.compare import critical_difference_diagram

    drawn = output is not None and output.suffix.lower() in DRAWN
    tables.check_table(output, also=DRAWN)
    table = _complete(wide_table(open_table(results).collect(), metric, results), results, drop_incomplete)
    better = _higher_is_better(metric, higher)
    diagram = critical_difference_diagram(
        table, better, alpha, zero_method, title=metric, missing="drop" if drop_incomplete else "raise"
    )
    summary = _summary(diagram, metric, better, output)
    if output is not None and drawn:
        diagram.save(output)
    elif output is not None:
        tables.write_table({name: [pair[name] for pair in summary["pairs"]] for name in summary["pairs"][0]}, output)
    show.result(summary, json, _show)


def wide_table(table: pl.DataFrame, metric: str, path: Path) -> pl.DataFrame:
    """Return data sets x classifiers from either format, with the mean over folds."""
    import polars as pl

    if not {"dataset", "classifier"} <= set(table.columns):
        return _first_names(table, path)
    table = table.with_columns(pl.col("dataset").cast(pl.String))  # a data set may be called 1
    if "metric" in table.columns:
        known = table["metric"].unique().sort().to_list()
        if metric not in known:
            raise DataError(f"{path}: there is no metric {metric!r}.{did_you_mean(metric, known)}")
        table = table.filter(table["metric"] == metric)
    value = "value" if "value" in table.columns else metric
    if value not in table.columns:
        raise DataError(f"{path}: a long table needs a column 'value', or one named {metric!r}.")
    if not table[value].dtype.is_numeric():
        raise DataError(f"{path}: column {value!r} must hold numbers, not text.")
    cells = table.group_by("dataset", "classifier", maintain_order=True)
    sizes = cells.len()["len"]
    if sizes.n_unique() > 1:
        warn(
            f"{path}: the cells are means of {sizes.min()!r} to {sizes.max()!r} values. Are all folds there?",
        )
    figure = pl.col(value)
    # One missing value makes the mean missing.
    means = cells.agg(pl.when(figure.is_null().any()).then(None).otherwise(figure.mean()).alias(value))
    return means.pivot("classifier", index="dataset", values=value)


def _first_names(table: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Return a table whose first column names the data sets as text, also where the names are whole numbers."""
    import polars as pl

    first = table.columns[0] if table.columns else ""
    if not table.columns or table[first].dtype.is_float():
        raise DataError(f"{path}: the first column must name the data sets, and column {first!r} holds figures.")
    return table.with_columns(pl.col(first).cast(pl.String))


def _complete(table: pl.DataFrame, path: Path, drop: bool) -> pl.DataFrame:
    """Return the complete table; raise for an empty cell, with the way to leave its data set out."""
    if drop or table.width < 2:
        return table
    for name in table.columns[1:]:
        empty = table[name].is_null().arg_true()
        if len(empty):
            where = f"data set {table[table.columns[0]][empty[0]]!r}, classifier {name!r}"
            raise DataError(f"{path}: {where}: no value. Fill it in, or leave such data sets out: --drop-incomplete.")
    return table


def _higher_is_better(metric: str, given: bool | None) -> bool:
    if given is not None:
        return given
    if metric not in HIGHER | LOWER:
        raise DataError(f"Is a high {metric} good or bad? Add --higher or --lower.")
    return metric in HIGHER


def _summary(diagram: Diagram, metric: str, better: bool, output: Path | None) -> dict[str, Any]:
    omnibus, pairs = diagram.friedman, diagram.posthoc
    names = pairs.classifiers
    order = sorted(range(len(names)), key=lambda j: (float(pairs.ranks[j]), j))
    tested = [
        {
            "better": names[i],
            "worse": names[j],
            "p_value": float(pairs.p_values[i, j]),
            "adjusted": float(pairs.adjusted[i, j]),
            "significant": bool(pairs.significant[i, j]),
        }
        for place, i in enumerate(order)
        for j in order[place + 1 :]
    ]
    return {
        "metric": metric,
        "higher_is_better": better,
        "data_sets": len(omnibus.datasets),
        "ranks": {names[j]: float(pairs.ranks[j]) for j in order},
        "friedman": {
            "statistic": omnibus.statistic,
            "f_statistic": omnibus.f_statistic,
            "degrees_of_freedom": list(omnibus.degrees_of_freedom),
            "p_value": omnibus.p_value,
        },
        "alpha": pairs.alpha,
        "zero_method": pairs.zero_method,
        "pairs": tested,
        "cliques": [list(clique) for clique in pairs.cliques],
        "singles": list(pairs.singles),
        "file": None if output is None else str(output),
    }


def _show(summary: dict[str, Any]) -> None:
    console = show.out()
    better = "higher" if summary["higher_is_better"] else "lower"
    console.print(f"{summary['metric']} on {summary['data_sets']} data sets, {better} is better", style="bold")
    groups = {
        name: " ".join(str(g) for g, clique in enumerate(summary["cliques"], start=1) if name in clique)
        for name in summary["ranks"]
    }
    rows = [[name, f"{rank:.3f}", groups[name] or "-"] for name, rank in summary["ranks"].items()]
    show.print_table(("classifier", "average rank", "groups"), rows, "prp")
    console.print("Classifiers that share a group are not told apart.", style="dim")
    console.print()
    test = summary["friedman"]
    df = ", ".join(map(str, test["degrees_of_freedom"]))
    console.print(
        f"Friedman chi2 = {test['statistic']:.4f}; Iman and Davenport F({df}) = {test['f_statistic']:.4f}, "
        f"p = {test['p_value']:.3g}."
    )
    significant = [pair for pair in summary["pairs"] if pair["significant"]]
    console.print(
        f"{len(significant)} of {len(summary['pairs'])} pairs differ at level {summary['alpha']:g} (Wilcoxon "
        f"signed-rank tests, {summary['zero_method']}, Holm's adjustment)."
    )
    if significant:
        rows = [[p["better"], p["worse"], f"{p['p_value']:.2g}", f"{p['adjusted']:.2g}"] for p in significant]
        show.print_table(("ranks better", "than", "p", "adjusted p"), rows, "pprr")
    if summary["file"] is not None:
        show.hint(f"Wrote {summary['file']}.")
