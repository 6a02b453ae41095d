"""The studies behind the report, by name: the paper's, ours, and one experiment per question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from plainrisk.errors import DataError, did_you_mean
from plainrisk_lab.study import METRICS, ClassifierSpec, Plan

__all__ = ["STUDIES", "narrowed"]

_TWELVE = (
    *("NNLR", "LinNNLR", "ARM1", "ARM2", "LinARM1", "LinARM2"),
    *("MixARM1", "MixLinARM1", "MixMonoXGB", "MixXGB", "MonoXGB", "XGB"),
)
_POLAND = tuple(f"poland_{k}" for k in range(5))
_SMALL = ("heloc", "gmsc", "taiwan", "german", "japan", "australia", *_POLAND)
_PAPER_SETS = (*_SMALL, *(f"lc_{k}" for k in range(13)))
# The report calls these two by names; to the product they are options.
_DIRECT = {"DirectARM2": "ARM2", "MixDirectARM1": "MixARM1"}
_OURS = (
    *("ARM1", "LinARM1", "BandARM1", "DirectARM1", "ARM2", "LinARM2", "DirectARM2"),
    *("MixARM1", "CalibratedMixARM1", "MixLinARM1", "MixDirectARM1", "XGB", "MonoXGB"),
)


def _under(convention: Literal["paper", "balanced"], names: Iterable[str]) -> tuple[ClassifierSpec, ...]:
    """Return classifiers of ours by the paper's conventions, without a ridge or with the default one ("balanced")."""
    ridge = {"ridge": "auto"} if convention == "balanced" else {}
    # Trees have no ridge.
    return tuple(ClassifierSpec(name=n, options={"paper": True, **({} if "XGB" in n else ridge)}) for n in names)


def _any_bin(names: Iterable[str]) -> tuple[ClassifierSpec, ...]:
    """Return classifiers with bins of any size, as all had when this study was first run; trees have none."""
    return tuple(
        ClassifierSpec(
            name=n,
            make=_DIRECT.get(n),
            options={} if "XGB" in n else {"min_bin_rows": 1, **({"link": "linear"} if n in _DIRECT else {})},
        )
        for n in names
    )


def _spec(name: str, make: str, /, **options: Any) -> ClassifierSpec:
    return ClassifierSpec(name=name, make=make, options=options)


_RIVALS = (
    _spec("BinnedLR", "plainrisk_lab.paper.rivals:BinnedLogistic"),
    _spec("EBM", "plainrisk_lab.paper.rivals:MainEffectsEBM"),
    _spec("Optbinning", "plainrisk_lab.paper.rivals:OptbinningScorecard"),
    _spec("LightGBM", "lightgbm:LGBMClassifier", n_jobs=1, random_state=0, verbose=-1),
    _spec("TunedXGB", "plainrisk_lab.paper.rivals:TunedXGBoost"),
)
_SMOOTH = (
    ClassifierSpec(name="SmoothARM1"),
    _spec("SmoothARM1 + pairs", "SmoothARM1", pairs="auto"),
    ClassifierSpec(name="BandARM1"),
    ClassifierSpec(name="ARM1"),
)
_SMOOTH_RIVALS = (
    _spec("CatBoost", "plainrisk_lab.paper.rivals:CatBoost"),
    _spec("EBM as it comes", "plainrisk_lab.paper.rivals:EBM"),
    _spec("EBM, monotone", "plainrisk_lab.paper.rivals:MonotoneEBM"),
)
_TEN = ("german", "japan", "australia", "heloc", "gmsc", "taiwan", "poland_0", "poland_2", "poland_4")
_ONE_HOT = tuple(
    _spec(name, "plainrisk_lab.paper.variants:without_order", make=name)
    for name in ("ARM1", "LinARM1", "ARM2", "LinARM2", "MixARM1", "MixLinARM1", "XGB", "MonoXGB")
)
_BY_SLSQP = (("ARM1", "arm1"), ("ARM2", "arm2"), ("MixARM1", "mixture"))
_SLSQP = (
    _spec("NNLR-SLSQP", "plainrisk_lab.paper.slsqp:nnlr"),
    _spec("NNLR-SLSQP-scaled", "plainrisk_lab.paper.slsqp:nnlr", scaled=True),
    *(
        _spec(f"{line}NNLR-SLSQP-{steps}", "plainrisk_lab.paper.slsqp:nnlr", steps=steps, linearised=bool(line))
        for line in ("", "Lin")
        for steps in (10, 25, 100)
    ),
    *(
        _spec(f"{line}{name}-SLSQP-{steps}", f"plainrisk_lab.paper.slsqp:{factory}", steps=steps, linearised=bool(line))
        for name, factory in _BY_SLSQP
        for line in ("", "Lin")
        for steps in (25, 50, 100)
    ),
)
_TREES = tuple(
    _spec(f"{name}, {method}", name, paper=True, params={"tree_method": method})
    for name in ("MonoXGB", "XGB")
    for method in ("hist", "exact", "approx")
)
_REFITTED = tuple(
    _spec(f"LinARM2 refitted, {what}", "plainrisk_lab.paper.variants:refitted_line", ridge=ridge)
    for what, ridge in (("no ridge", 0.0), ("ridge", "auto"))
)
_CODES = (
    *(
        _spec(
            f"{line}{name}-SLSQP-{steps}",
            "plainrisk_lab.paper.variants:codes_as_numbers",
            make=factory,
            steps=steps,
            linearised=bool(line),
        )
        for name, factory in _BY_SLSQP
        for line in ("", "Lin")
        for steps in (25, 100)
    ),
    *(_spec(name, "plainrisk_lab.paper.variants:codes_as_numbers", make=name) for name in ("XGB", "MonoXGB")),
)


def _plan(name: str, datasets: tuple[str, ...], classifiers: tuple[Any, ...], seed: int = 0) -> Plan:
    return Plan(name=name, datasets=datasets, classifiers=classifiers, seed=seed, metrics=tuple(METRICS))


STUDIES: Mapping[str, Plan] = {
    plan.name: plan
    for plan in (
        _plan("paper", _PAPER_SETS, _under("paper", _TWELVE)),
        _plan("balanced", _PAPER_SETS, _under("balanced", _TWELVE)),
        # One column, in less than a minute, from data that come with the package.
        _plan("german", ("german",), _under("paper", _TWELVE)),
        # What if PAY_0 of Taiwan had no order?
        _plan("one-hot", ("taiwan",), _ONE_HOT),
        # What do columns known only afterward do to the AUC?
        _plan(
            "leakage", ("lending_club_2007_2011", "lending_club_2007_2011_leaky"), _under("balanced", ("ARM1", "XGB"))
        ),
        # Does it matter how XGBoost searches its splits?
        _plan("trees", ("poland_0", "poland_2", "poland_4"), _TREES),
        # How much of a difference on few rows is the split into folds?
        *(
            _plan(f"seed-{seed}", ("german", "japan", "australia"), _under("balanced", _TWELVE[2:]), seed)
            for seed in range(1, 6)
        ),
        # Where does the paper's solver stop?
        _plan("slsqp", _SMALL, _SLSQP),
        # How do ours compare with each other and with rivals, at the true base rate?
        _plan("product", (*_PAPER_SETS, "lending_club_2007_2011"), (_SMOOTH[0], *_any_bin(_OURS), *_RIVALS)),
        # How do smooth shapes compare, and with pairs? Rivals of the study "product" are on the same folds.
        _plan("smooth", (*_TEN, "lending_club_2007_2011"), _SMOOTH),
        _plan("smooth-rivals", (*_TEN, "lending_club_2007_2011"), _SMOOTH_RIVALS),
        # What if LinARM2's second layer is fitted on lines?
        _plan("refitted", _SMALL, _REFITTED),
        # What if the code for a missing ratio is read as a number?
        _plan("codes", _POLAND, _CODES),
    )
}


def narrowed(
    plan: Plan,
    datasets: Iterable[str] | None = None,
    classifiers: Iterable[str] | None = None,
    folds: int | None = None,
    linarm2: Literal["replaced", "refitted"] = "replaced",
) -> Plan:
    """Return a plan for some of its data sets and classifiers only, and for another number of folds.

    Parameters
    ----------
    linarm2 : "replaced" has both links of a fitted ARM2 replaced, "refitted" fits the second layer to lines

    >>> small = narrowed(STUDIES["paper"], ["german"], ["ARM1", "XGB"], 5)
    >>> [d.name for d in small.data], [c.name for c in small.lineup], small.cv
    (['german'], ['ARM1', 'XGB'], 5)
    """
    lineup = plan.lineup
    if linarm2 == "refitted":
        ridge = "auto" if plan.name == "balanced" else 0.0
        refitted = _spec("LinARM2", "plainrisk_lab.paper.variants:refitted_line", ridge=ridge)
        lineup = tuple(refitted if spec.name == "LinARM2" else spec for spec in lineup)
    chosen = {
        "datasets": _chosen("data set", plan, {d.name: d for d in plan.data}, datasets),
        "classifiers": _chosen("classifier", plan, {c.name: c for c in lineup}, classifiers),
    }
    return msgspec.structs.replace(plan, **chosen, cv=plan.cv if folds is None else folds)


def _chosen(what: str, plan: Plan, known: Mapping[str, Any], names: Iterable[str] | None) -> tuple[Any, ...]:
    for name in names or ():
        if name not in known:
            raise DataError(f"The study {plan.name!r} has no {what} {name!r}.{did_you_mean(name, known)}")
    return tuple(known.values()) if names is None else tuple(known[name] for name in names)
