"""The studies that come with the package, by name, and studies of one's own from a file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from plainrisk.errors import DataError, did_you_mean
from plainrisk.files import read_text
from plainrisk.study.plan import ClassifierSpec, Plan
from plainrisk.study.rivals import RIVALS

__all__ = ["STUDIES", "load_plan"]

_TWELVE = (
    *("NNLR", "LinNNLR", "ARM1", "ARM2", "LinARM1", "LinARM2"),
    *("MixARM1", "MixLinARM1", "MixMonoXGB", "MixXGB", "MonoXGB", "XGB"),
)
_POLAND = tuple(f"poland_{k}" for k in range(5))
_SMALL = ("heloc", "gmsc", "taiwan", "german", "japan", "australia", *_POLAND)
_PAPER_SETS = (*_SMALL, *(f"lc_{k}" for k in range(13)))
_OURS = (
    *("ARM1", "LinARM1", "BandARM1", "DirectARM1", "ARM2", "LinARM2", "DirectARM2"),
    *("MixARM1", "MixLinARM1", "MixDirectARM1", "XGB", "MonoXGB"),
)
_TUNED = (
    ClassifierSpec(name="ARM1cv", make="plainrisk.study.experiments:tuned"),
    ClassifierSpec(name="DirectARM1cv", make="plainrisk.study.experiments:tuned", options={"link": "linear"}),
)
_ONE_HOT = tuple(
    ClassifierSpec(name=name, make="plainrisk.study.experiments:without_order", options={"make": name})
    for name in ("ARM1", "LinARM1", "ARM2", "LinARM2", "MixARM1", "MixLinARM1", "XGB", "MonoXGB")
)
_SLSQP = (
    ClassifierSpec(name="NNLR-SLSQP", make="plainrisk.study.slsqp:nnlr"),
    ClassifierSpec(name="NNLR-SLSQP-scaled", make="plainrisk.study.slsqp:nnlr", options={"scaled": True}),
    *(
        ClassifierSpec(
            name=f"{line}NNLR-SLSQP-{steps}",
            make="plainrisk.study.slsqp:nnlr",
            options={"steps": steps, "linearised": bool(line)},
        )
        for line in ("", "Lin")
        for steps in (10, 25, 100)
    ),
    *(
        ClassifierSpec(
            name=f"{line}{name}-SLSQP-{steps}",
            make=f"plainrisk.study.slsqp:{factory}",
            options={"steps": steps, "linearised": bool(line)},
        )
        for name, factory in (("ARM1", "arm1"), ("ARM2", "arm2"), ("MixARM1", "mixture"))
        for line in ("", "Lin")
        for steps in (25, 50, 100)
    ),
)
_TREES = tuple(
    ClassifierSpec(name=f"{name}, {method}", make=name, options={"params": {"tree_method": method}})
    for name in ("MonoXGB", "XGB")
    for method in ("hist", "exact", "approx")
)
_REFITTED = tuple(
    ClassifierSpec(
        name=f"LinARM2 refitted, {what}", make="plainrisk.study.experiments:refitted_line", options={"ridge": ridge}
    )
    for what, ridge in (("no ridge", 0.0), ("ridge", "auto"))
)
_CODES = (
    *(
        ClassifierSpec(
            name=f"{line}{name}-SLSQP-{steps}",
            make="plainrisk.study.experiments:codes_as_numbers",
            options={"make": factory, "steps": steps, "linearised": bool(line)},
        )
        for name, factory in (("ARM1", "arm1"), ("ARM2", "arm2"), ("MixARM1", "mixture"))
        for line in ("", "Lin")
        for steps in (25, 100)
    ),
    *(
        ClassifierSpec(name=name, make="plainrisk.study.experiments:codes_as_numbers", options={"make": name})
        for name in ("XGB", "MonoXGB")
    ),
)
# The same folds dealt anew, to see how much of a difference on few rows is the deal.
_SEEDS = tuple(
    Plan(
        name=f"seed-{seed}",
        datasets=("german", "japan", "australia"),
        classifiers=_TWELVE[2:],
        conventions="balanced",
        seed=seed,
    )
    for seed in range(1, 6)
)

STUDIES: Mapping[str, Plan] = {
    plan.name: plan
    for plan in (
        Plan(name="paper", datasets=_PAPER_SETS, classifiers=_TWELVE, conventions="paper"),
        Plan(name="balanced", datasets=_PAPER_SETS, classifiers=_TWELVE, conventions="balanced"),
        Plan(
            name="product",
            datasets=(*_PAPER_SETS, "lending_club_2007_2011"),
            classifiers=(*_OURS, *_TUNED, *RIVALS),
        ),
        Plan(name="one-hot", datasets=("taiwan",), classifiers=_ONE_HOT, conventions="paper"),
        Plan(name="slsqp", datasets=_SMALL, classifiers=_SLSQP, conventions="paper"),
        Plan(
            name="leakage",
            datasets=("lending_club_2007_2011", "lending_club_2007_2011_leaky"),
            classifiers=("ARM1", "XGB"),
            conventions="balanced",
        ),
        Plan(name="trees", datasets=("poland_0", "poland_2", "poland_4"), classifiers=_TREES, conventions="paper"),
        Plan(name="refitted", datasets=_SMALL, classifiers=_REFITTED, conventions="paper"),
        Plan(name="codes", datasets=_POLAND, classifiers=_CODES, conventions="paper"),
        *_SEEDS,
    )
}


def load_plan(name: str | Path) -> Plan:
    """Return a study by its name (see `STUDIES`), or read one from a TOML file; its files are beside it.

    A study of one's own data and classifier::

        name = "ours"
        datasets = ["german", {name = "book", file = "loans.parquet", schema = "loans.toml"}]
        classifiers = ["ARM1", {name = "ours", make = "ourpackage.models:make", options = {depth = 3}}]
    """
    if str(name) in STUDIES:
        return STUDIES[str(name)]
    path = Path(name)
    if path.suffix != ".toml":
        raise DataError(f"There is no study {str(name)!r}.{did_you_mean(name, STUDIES)} Or name a .toml file.")
    text = read_text(path, limit=2**20, error=DataError)
    try:
        return _beside(msgspec.convert(tomllib.loads(text), Plan), path.parent)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path} is not valid TOML: {error}.") from None
    except msgspec.ValidationError as error:
        # What __post_init__ raises arrives wrapped.
        message = str(error.__cause__) if isinstance(error.__cause__, DataError) else f"Study: {error}."
        raise DataError(f"{path}: {message}") from None


def _beside(plan: Plan, folder: Path) -> Plan:
    def place(file: str | None) -> str | None:
        return None if file is None else str((folder / file).resolve())

    moved = tuple(msgspec.structs.replace(d, file=place(d.file), schema=place(d.schema)) for d in plan.data)
    return msgspec.structs.replace(plan, datasets=moved)
