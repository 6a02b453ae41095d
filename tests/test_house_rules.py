"""Rules that a reader should not have to check: imports point down, names are sorted, defaults are as documented."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import plainrisk as pr

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "plainrisk"
LAB = ROOT / "lab" / "src" / "plainrisk_lab"
MODULES = sorted(SOURCE.rglob("*.py"))
LAB_MODULES = sorted(LAB.rglob("*.py"))
TESTS = sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / "lab" / "tests").rglob("*.py")])

# Docs/architecture: a module imports from lower ranks, from its own package, and within rank 0.
RANKS: dict[str, float] = {
    **dict.fromkeys(
        [
            *(
                "_interpreter",
                "_native",
                "_types",
                "_version",
                "audit_log",
                "checks",
                "data",
                "decision",
                "errors",
                "figures",
                "files",
                "leftovers",
                "schema",
                "signing",
                "tables",
                "text",
            ),
            *("intervals", "threads", "totals"),
        ],
        0,
    ),
    "form": 1,
    **dict.fromkeys(["bins", "explain", "export", "measure", "solve"], 2),
    "fit": 2.2,
    "exports": 2.3,
    "receipts": 2.3,
    "report": 2.4,
    "extract": 2.4,
    "model": 2.5,
    "models": 3,
    "validate": 3.5,
    "document": 3.7,
    "datasets": 4,
    "": 4.5,  # plainrisk itself, as imported by others
    "spark": 4.6,
    "serve": 4.8,  # a command starts it
    "cli": 5,
}
LAB_RANKS = {"tables": -1, "results": 0, "diagram": 0, "rank_tests": 1, "compare": 2, "study": 3, "paper": 4, "cli": 4}


@functools.cache
def tree_of(path):
    """The syntax of a file, read once for all rules."""
    return ast.parse(path.read_text(encoding="utf-8"))


def relative(path):
    return path.relative_to(SOURCE).as_posix()


def package_of(path):
    """The name that has a rank: the package below plainrisk, or the module if it stands alone."""
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imported(path):
    """Every part of plainrisk that a module imports, at its top or inside a function."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{relative(path)}:{node.lineno} imports by a relative name"
            names = [node.module]
            if node.module == "plainrisk":
                names = [f"plainrisk.{a.name}" if a.name in RANKS else "plainrisk" for a in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "plainrisk":
                yield parts[1] if len(parts) > 1 else ""


# ---- imports


def test_every_part_has_a_rank():
    parts = {package_of(path) for path in MODULES} - {"__init__"}
    assert parts == set(RANKS) - {""}, "every part has a rank, and only parts that are there have one"


def test_imports_point_down():
    wrong = []
    for path in [p for p in MODULES if relative(p) != "__init__.py"]:
        own = package_of(path)
        for other in set(imported(path)) - {own}:
            low, high = RANKS[other], RANKS[own]
            if not (low < high or low == high == 0):
                wrong.append(f"{relative(path)} (rank {high}) imports {other or 'plainrisk'} ({low})")
    assert not wrong


def names_imported(path):
    """The full names of all that a module imports."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_nothing_in_the_wheel_imports_the_lab():
    modules = [*MODULES, ROOT / "src" / "plainrisk_command.py"]
    assert not [p for p in modules if any(name.startswith("plainrisk_lab") for name in names_imported(p))]


def test_imports_of_the_lab_point_down():
    wrong = []
    for path in LAB_MODULES:
        own = path.relative_to(LAB).parts[0].removesuffix(".py")
        inside = {name.split(".")[1] for name in names_imported(path) if name.startswith("plainrisk_lab.")} - {own}
        rank = LAB_RANKS.get(own, 5)  # the package itself names all parts
        wrong += [f"{path.relative_to(LAB)} imports {other}" for other in inside if LAB_RANKS[other] >= rank]
    assert not wrong


OUTSIDE = [
    path
    for folder in ("lab/src", "scripts", "examples", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


def test_public_names_that_are_used_outside_exist():
    """A type checker cannot tell: the package imports its parts when they are asked for."""
    used = {(name, path.name) for path in OUTSIDE for name in re.findall(r"\bpr\.(\w+)", path.read_text("utf-8"))}
    assert not [f"{file}: there is no pr.{name}" for name, file in sorted(used) if not hasattr(pr, name)]


HEAVY = [
    "cryptography",
    "docx",
    "duckdb",
    "fastapi",
    "matplotlib",
    "onnx",
    "pandas",
    "polars",
    "prometheus_client",
    "pyarrow",
    "pyspark",
    "rich",
    "starlette",
    "typer",
    "uvicorn",
    "xgboost",
]


def loaded_by(statement):
    script = f"import sys\n{statement}\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=600)
    return set(done.stdout.split())


GOLDEN = ROOT / "tests" / "golden" / "BandARM1.format2.model.json"


def test_loading_and_scoring_load_no_scikit_learn_plotting_frame_web_or_spark_package():
    row = dict.fromkeys(pr.load(GOLDEN).form_.features)
    loaded = loaded_by(f"import plainrisk as pr\npr.load({str(GOLDEN)!r}).predict_proba({row!r})")
    assert "numpy" in loaded
    assert not loaded & {*HEAVY, "joblib", "scipy", "sklearn"}


def test_estimators_load_no_plotting_frame_web_or_spark_package():
    """None beyond what scikit-learn loads by itself: some of its versions look for pandas."""
    loaded = loaded_by("import plainrisk as pr\nassert pr.AdditiveRiskModel is pr.models.arm.AdditiveRiskModel")
    assert "sklearn" in loaded
    assert not (loaded - loaded_by("import sklearn.base")) & set(HEAVY)


# ---- names

PUBLIC = {
    "AdditiveRiskModel",
    "Feature",
    "NonnegativeLogisticRegression",
    "RiskForm",
    "RiskModel",
    "Schema",
    "TwoLayerRiskModel",
    "__version__",
    "cross_validate",
    "cutoffs",
    "datasets",
    "diff",
    "evaluate",
    "load",
    "metrics",
    "verify_export",
}


def test_public_names_stay():
    """A name may come; one that goes breaks somebody's program."""
    assert set(pr.__all__) >= PUBLIC
    for name in pr.__all__:
        assert hasattr(pr, name)


def test_evaluate_is_a_function_whatever_was_imported():
    for module in ("plainrisk.measure.evaluation", "plainrisk.measure.cutoffs", "plainrisk.validate.holdout"):
        importlib.import_module(module)
    assert callable(pr.evaluate)
    assert callable(pr.cutoffs)


def isort_order(name):
    """Constants, then classes, then the rest: the order the linter keeps, too."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
    return kind, name


def dotted_name(path):
    source = SOURCE if path.is_relative_to(SOURCE) else LAB
    return ".".join(path.relative_to(source.parent).with_suffix("").parts).removesuffix(".__init__")


def exported(path):
    for node in tree_of(path).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
            return ast.literal_eval(node.value)
    return None


def test_exported_names_are_sorted_and_exist():
    wrong = []
    for path in [*MODULES, *LAB_MODULES]:
        names = exported(path)
        if names is None:
            continue
        module = importlib.import_module(dotted_name(path))
        if names != sorted(set(names), key=isort_order) or not all(hasattr(module, name) for name in names):
            wrong.append(dotted_name(path))
    assert not wrong


# ---- documentation

CLASSES = [
    value
    for value in (getattr(pr, name) for name in pr.__all__)
    if inspect.isclass(value) and issubclass(value, BaseEstimator)
]


def documented_parameters(cls):
    """Name: default, as text or None, of every parameter in the class docstring."""
    section = inspect.getdoc(cls).partition("Parameters\n----------\n")[2]
    section = re.split(r"\n\n?[A-Z][a-z]+\n-+\n", section)[0]
    found = {}
    for line in section.splitlines():
        match = re.match(r"(\w+(?:, \w+)*) : (.*)", line)
        if match:
            default = re.search(r"default=(.+?)$", match[2])
            found.update(dict.fromkeys(match[1].split(", "), default[1] if default else None))
    return found


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_documented_defaults_are_the_real_ones(cls):
    documented = documented_parameters(cls)
    real = {name: p.default for name, p in inspect.signature(cls).parameters.items()}
    assert list(documented) == list(real), "every parameter is documented, in its order"
    for name, text in documented.items():
        if text is None:
            continue
        value = getattr(pr, text) if text in pr.__all__ else ast.literal_eval(text)
        assert value == real[name], f"{cls.__name__}.{name}: documented {text}, real {real[name]!r}"
        assert type(value) is type(real[name])


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_constructors_only_assign(cls):
    """What a parameter means is decided in fit, so that clone and set_params are exact."""
    marks = {name: object() for name in inspect.signature(cls).parameters}
    assert vars(cls(**marks)) == marks


# ---- tests


def expectations(tree):
    """The calls of pytest.raises and pytest.warns."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("raises", "warns")
        ):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id == "pytest":
                yield node


def test_every_expected_error_says_which():
    assert not [
        f"{path.name}:{call.lineno}"
        for path in TESTS
        for call in expectations(ast.parse(path.read_text(encoding="utf-8")))
        if "match" not in {keyword.arg for keyword in call.keywords}
    ]


def test_test_files_have_names_of_their_own():
    names = [path.name for path in TESTS if path.name != "conftest.py"]
    assert len(set(names)) == len(names)


def test_no_file_names_the_machine_it_was_written_on():
    places = ["/" + "work/", "/" + "root/", "/" + "home/"]
    for path in (*MODULES, *LAB_MODULES, *TESTS, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        assert not [place for place in places if place in text], path


# Where rows live is known to `data` alone: nothing else may ask, or go through them batch by batch.
_PLACES = re.compile(r"isinstance\([^)]*\b(Batches|SparkRows|Spool|StoredRows|Stream|Training)\b|\.batches\(")
_SPARK = re.compile(r"pyspark|SparkRows|spark_rows|mapInArrow", re.IGNORECASE)


def test_no_model_asks_where_rows_live():
    rooms = ("bins", "fit", "models", "solve")
    asked = [relative(p) for p in MODULES if package_of(p) in rooms and _PLACES.search(p.read_text(encoding="utf-8"))]
    assert asked == []


def test_spark_is_known_to_data_and_its_own_module_alone():
    """In text as in code; elsewhere no name is of Spark but that of our module, which the command `score` calls."""
    known = [p for p in MODULES if _SPARK.search(p.read_text(encoding="utf-8"))]
    assert {package_of(p) for p in known} <= {"data", "spark"}
    names = {
        (relative(path), token.string)
        for path in MODULES
        if package_of(path) not in ("data", "spark")
        for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
        if token.type == tokenize.NAME and "spark" in token.string.lower()
    }
    assert names == {("cli/explain.py", "spark")}


def test_what_may_ask_for_sums_holds_no_lock():
    """The cached properties of Python 3.11 would stop fits that go through rows together."""
    locked = [relative(p) for p in MODULES if package_of(p) in ("fit", "solve") and "cached_property" in p.read_text()]
    assert locked == []
