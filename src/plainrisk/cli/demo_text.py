"""What `plainrisk demo` tells, in words and small tables."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from plainrisk.cli import show
from plainrisk.cli.demo_decision import tell_decision
from plainrisk.cli.source import Rows

__all__ = ["tell"]

SHOWN = {
    "Status of existing checking account": "11: below 0 DM, 12: below 200 DM, 13: 200 DM or more, 14: none",
    "Duration in month": "",
    "Credit history": "A30: no credits, A31, A32: paid back so far, A33: delays, A34: critical account",
}
_LARGEST = 7


def tell(models: dict[str, Any], rows: Rows, result: dict[str, Any]) -> None:
    """Print the whole demonstration."""
    console = show.out()
    console.print("plainrisk on German credit", style="bold underline")
    console.print(
        f"{result['rows']:,} loans with {result['features']} features; {result['base_rate']:.0%} of them "
        "ended well. These data predict the good outcome: a high probability is a good sign."
    )
    _tell_figures(result)
    _tell_shapes(models["ARM1"], rows)
    _tell_promises(result)
    _tell_step(result["step"])
    _tell_applicant(result["applicant"], result["models"]["DirectARM1"])
    tell_decision(result["decision"])
    _tell_next(result["files"])


def _tell_figures(result: dict[str, Any]) -> None:
    from plainrisk.cli.folds import METRICS

    cv = {name: model["cv"] for name, model in result["models"].items() if name != "DirectARM1"}
    show.heading("How good are the models?")
    show.out().print(
        "ARM1 adds up one step function per feature. ARM2 judges each subscale by itself, then weighs them. LinARM1 "
        "is ARM1 with the sigmoid replaced by the best line; MixLinARM1 pools one such model per subscale. "
        f"Mean ± standard deviation over {cv['ARM1']['folds']} stratified folds:"
    )
    show.figures(cv, METRICS)


def _tell_shapes(model: Any, rows: Rows) -> None:
    show.heading("What did ARM1 learn? Three of its features")
    console = show.out()
    console.print("A score above 0 makes a good end likelier than average; scores are in log odds.")
    for name, legend in SHOWN.items():
        feature = rows.schema.features[name]
        kind = feature.kind if feature.sign == 0 else f"{feature.direction}, by the schema"
        show.shape(f"{name} ({kind})", model.form_.parts[0].shapes[name], "good")
        if legend:
            console.print(legend, style="dim")


def _tell_promises(result: dict[str, Any]) -> None:
    show.heading("What is certain about them?")
    console = show.out()
    for name in ("ARM1", "ARM2"):
        certificate, solver = result["models"][name]["certificate"], result["models"][name]["solver"]
        monotone = [c for c in certificate["checks"] if c["name"].startswith("monotone in ")]
        kept = sum(c["holds"] for c in monotone)
        solved = "is at the optimum" if solver["converged"] else "stopped before the optimum"
        console.print(
            f"{name} keeps every promise. {kept} of {len(monotone)} features with a direction obey it, "
            f"proved for every applicant there could be; every probability lies in [0, 1]; the solver {solved} "
            f"(KKT residual {max(solver['kkt']):.0e})."
        )


def _tell_step(step: dict[str, Any]) -> None:
    show.heading("Why a line? The same step for two people")
    first, second = step["people"]
    show.out().print(
        f"Applicants {first} and {second} both ask for {step['from']} months. What if it were {step['to']}? In log "
        "odds the step is the same for both, but in probability the logistic model gives each another answer. The line "
        "gives both the same."
    )
    rows: list[list[str | Text]] = []
    for name, moves in step["models"].items():
        cells = [f"{before:.1%} -> {after:.1%}   {after - before:+.1%}" for before, after in moves]
        rows.append([f"{name} ({'logistic' if name == 'ARM1' else 'line'})", *cells])
    show.print_table(("model", f"applicant {first}", f"applicant {second}"), rows)


def _tell_applicant(example: dict[str, Any], model: dict[str, Any]) -> None:
    show.heading(f"Why this probability? Applicant {example['row']}, explained")
    console = show.out()
    console.print(
        f"DirectARM1 is ARM1 fitted as a straight line (AUC {model['cv']['auc']['mean']:.4f}; "
        f"{model['solver']['clipped']:.0%} of the rows are cut off at 0 or 1). So every part below is a "
        "piece of the probability itself, and they add up."
    )
    parts = sorted(example["contributions"], key=lambda part: -abs(part["contribution"]))
    largest = abs(parts[0]["contribution"])
    rows: list[list[str | Text]] = [["average of all loans", "", f"{example['constant']:.1%}", ""]]
    for part in parts[:_LARGEST]:
        amount = part["contribution"]
        rows.append([part["feature"], str(part["value"]), f"{amount:+.1%}", show.signed_bar(amount, largest, 8)])
    rest = sum(part["contribution"] for part in parts[_LARGEST:])
    rows.append([f"{len(parts) - _LARGEST} other features", "", f"{rest:+.1%}", show.signed_bar(rest, largest, 8)])
    rows.append([Text("probability of a good end", "bold"), "", Text(f"{example['total']:.1%}", "bold"), ""])
    show.print_table(("feature", "value", "part", "effect"), rows, numbers=("value", "part"))


def _tell_next(files: dict[str, str]) -> None:
    show.heading("Where to look, what to try")
    steps = {
        "models, plain JSON": f"{files['ARM1']}, {files['ARM2']}",
        "schema, to edit": files["schema"],
        "another model": "plainrisk fit german --model DirectARM2 -o model.json",
        "explain one": f"plainrisk explain german --model {files['ARM1']} --row 4",
        "score rows": f"plainrisk score german --model {files['ARM1']} -o risks.csv",
        "your own data": "plainrisk schema infer YOUR.csv --target NAME -o my.toml",
        "all commands": "plainrisk --help",
    }
    for why, what in steps.items():
        show.out().print(Text.assemble(f"{why:<20}", (what, "cyan")), soft_wrap=True)
