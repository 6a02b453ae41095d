"""Model files that are damaged or hostile, files that cannot be written, and models that are not ready."""

from __future__ import annotations

import json
import os
import stat

import numpy as np
import pytest
from sklearn.base import clone

import plainrisk as pr

M = "ModelFileError: "


def load(content, name="m.json"):
    return lambda w: pr.load(w.file(name, content))


def changed(change, *, rehash=False, name="ARM1"):
    """Load a model file that was changed; with its hash put right, as somebody with intent would."""

    def call(w):
        def and_hash(data):
            change(data)
            if rehash:
                for key in list(data):
                    if "sha256" in key:
                        del data[key]

        return pr.load(w.file("m.json", w.model_text(and_hash, name)))

    return call


def part(data):
    return data["form"]["parts"][0]


def shape(data, name="a"):
    return part(data)["shapes"][name]


def put(where, key, value):
    return lambda data: where(data).__setitem__(key, value)


def drop(where, key):
    return lambda data: where(data).pop(key)


def whole(data):
    return data


def form(data):
    return data["form"]


FILES = {
    "no file": (lambda w: pr.load("none.json"), M + "none.json"),
    "a folder": (lambda w: pr.load(w.folder), M),
    "a path with a NUL": (lambda w: pr.load("a\0b"), M),
    "an empty path": (lambda w: pr.load(""), M),
    "an empty file": (load(""), M + "m.json"),
    "blanks": (load("   \n"), M + "m.json"),
    "half a file": (lambda w: pr.load(w.file("m.json", w.model_text()[:400])), M + "m.json"),
    "a byte changed": (
        changed(lambda d: part(d).__setitem__("intercept", part(d)["intercept"] + 1e-9)),
        M + "m.json",
    ),
    "not JSON": (load("model = 1"), M + "m.json"),
    "a list": (load("[]"), M + "m.json"),
    "null": (load("null"), M + "m.json"),
    "a pickle": (load(b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x07SECRET."), M + "m.json"),
    "not UTF-8": (load(b'{"a": "\xff"}'), M + "m.json"),
    "NUL bytes": (load(b"{}\0"), M + "m.json"),
    "nested 100,000 deep": (load("[" * 100_000 + "]" * 100_000), M + "m.json"),
    "objects nested 100,000 deep": (load('{"form":' * 100_000), M + "m.json"),
    "a number of 5,000 digits": (load('{"format": ' + "9" * 5000 + "}"), M + "m.json"),
    "a number beyond all": (load('{"format": 1e999}'), M + "m.json"),
    "another format": (load('{"format": 99, "plainrisk": "9.9"}'), M + "99"),
    "a format that is text": (load('{"format": "1"}'), M + "m.json"),
    "a negative format": (load('{"format": -1}'), M + "m.json"),
    "escapes in the version": (load('{"format":99,"plainrisk":"\\u001b]0;pwned\\u001b[2J"}'), M + "m.json"),
    "an endless device": (lambda w: pr.load("/dev/zero"), M),
    "a schema": (lambda w: pr.load(w.folder / "schema.toml"), M),
    "a table": (lambda w: pr.load(w.folder / "good.csv"), M),
    "no form": (changed(drop(whole, "form")), M),
    "an unknown key": (changed(put(whole, "extra", 1), rehash=True), M),
    "a part without shapes": (changed(drop(part, "shapes"), rehash=True), M),
    "an unknown link": (changed(put(part, "link", {"kind": "probit"}), rehash=True), M),
    "an intercept of text": (changed(put(part, "intercept", "SECRET-7"), rehash=True), M),
    "an intercept beyond all": (changed(put(part, "intercept", 1e300), rehash=True), M),
    "no parts": (changed(put(form, "parts", []), rehash=True), M),
    "too few scores": (changed(put(shape, "scores", [0.0]), rehash=True), M),
    "scores of null": (changed(put(shape, "scores", [None]), rehash=True), M),
    "scores of text": (changed(put(shape, "scores", "abc"), rehash=True), M),
    "edges that fall": (changed(put(lambda d: shape(d)["levels"], "edges", [2.0, 1.0]), rehash=True), M),
    "a feature the schema does not know": (changed(put(lambda d: part(d)["shapes"], "zz", {}), rehash=True), M),
    "classes of three": (changed(put(form, "classes", [0, 1, 2]), rehash=True), M),
    "classes that are one": (changed(put(form, "classes", [1, 1]), rehash=True), M),
    "columns that are a number": (changed(put(form, "columns", 3), rehash=True), M),
    "columns without the features": (changed(put(form, "columns", []), rehash=True), M),
    "weights of a mixture beyond 1": (
        changed(put(lambda d: form(d)["pool"], "weights", [0.9, 0.9]), rehash=True, name="MixARM1"),
        M,
    ),
    "negative weights of a mixture": (
        changed(put(lambda d: form(d)["pool"], "weights", [1.5, -0.5]), rehash=True, name="MixARM1"),
        M,
    ),
    "a pool of another size": (
        changed(put(lambda d: form(d)["pool"], "weights", [1.0]), rehash=True, name="MixARM1"),
        M,
    ),
    "an edited fit record": (changed(put(lambda d: d["fit"], "base_rate", 0.999)), M),
}


@pytest.mark.parametrize(("call", "expected"), FILES.values(), ids=FILES)
def test_model_files(judge, call, expected):
    judge(call, expected)


def save(path):
    return lambda w: w.model("ARM1").save(path)


def is_none(result):
    return result is None


def private(w):
    path = w.file("m.json", "old")
    path.chmod(0o600)
    w.model("ARM1").save(path)
    return stat.S_IMODE(path.stat().st_mode), pr.load(path)


def through_a_link(w):
    target = w.file("real.json", "old")
    os.symlink(target, "link.json")
    w.model("ARM1").save("link.json")
    return os.path.islink("link.json"), pr.load(target)


def over_a_device(w):
    # A device of the case's own: should the case fail, as root it would replace the machine's.
    try:
        os.mknod("device.json", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    except OSError:
        pytest.skip("only root makes devices")
    w.model("ARM1").save("device.json")


def over_a_pipe(w):
    os.mkfifo("pipe.json")
    w.model("ARM1").save("pipe.json")


ERROR = "OutputError: "
unix = pytest.mark.skipif(os.name == "nt", reason="files of Unix")
WRITES = {
    "into a missing folder": (save("no/such/m.json"), ERROR + "no/such/m.json"),
    "over a folder": (lambda w: w.model("ARM1").save(w.folder), ERROR),
    "to a path with a NUL": (save("a\0b.json"), ERROR),
    "to an empty path": (save(""), ERROR),
    "to a path that is None": (save(None), ERROR),
    "to a name of 5,000 characters": (save("m" * 5000 + ".json"), ERROR),
    "over a device": (over_a_device, ERROR + "device.json"),
    "over a pipe": (over_a_pipe, ERROR + "pipe.json"),
    "into a file as if it were a folder": (
        lambda w: w.model("ARM1").save(w.file("f", "x") / "m.json"),
        ERROR + "m.json",
    ),
    "over a private file": (private, lambda found: found[0] == 0o600),
    "through a link": (through_a_link, lambda found: found[0]),
    "twice": (lambda w: [w.model("ARM1").save("m.json") for _ in range(2)], lambda r: r == [None, None]),
    "a model that is not fitted": (lambda w: pr.AdditiveRiskModel().save("m.json"), "NotFittedError: "),
}


@unix
@pytest.mark.parametrize(("call", "expected"), WRITES.values(), ids=WRITES)
def test_files_to_write(judge, call, expected):
    judge(call, expected)


def unfitted(call, kind="AdditiveRiskModel"):
    return lambda w: call(getattr(pr, kind)(), w)


N = "NotFittedError: "
NOT_READY = {
    "predict": (unfitted(lambda m, w: m.predict(w.X)), N),
    "predict_proba": (unfitted(lambda m, w: m.predict_proba(w.X)), N),
    "predict_proba of a dict": (unfitted(lambda m, w: m.predict_proba({"a": 1.0})), N),
    "score": (unfitted(lambda m, w: m.score(w.X, w.y)), N),
    "explain": (unfitted(lambda m, w: m.explain(w.X)), N),
    "reasons": (unfitted(lambda m, w: m.reasons(w.X)), N),
    "what_if": (unfitted(lambda m, w: m.what_if(w.X.head(1), 0.1)), N),
    "what_ifs": (unfitted(lambda m, w: m.what_ifs(w.X, 0.1)), N),
    "overview": (unfitted(lambda m, w: m.overview()), N),
    "drift": (unfitted(lambda m, w: m.drift(w.X)), N),
    "certify": (unfitted(lambda m, w: m.certify()), N),
    "schema_with_bins": (unfitted(lambda m, w: m.schema_with_bins()), N),
    "at_base_rate": (unfitted(lambda m, w: m.at_base_rate(0.1)), N),
    "a mixture": (unfitted(lambda m, w: m.predict_proba(w.X), "SubscaleMixture"), N),
    "two layers": (unfitted(lambda m, w: m.predict_proba(w.X), "TwoLayerRiskModel"), N),
    "trees": (unfitted(lambda m, w: m.predict_proba(w.X), "BoostedRiskModel"), N),
    "a linearised model": (lambda w: pr.Linearised(pr.AdditiveRiskModel()).predict_proba(w.X), N),
    "linearise": (lambda w: pr.linearise(pr.AdditiveRiskModel(), w.X), f"({N[:-2]}|ExtractionError|DataError): fitted"),
    "bootstrap": (
        lambda w: pr.bootstrap(pr.make_classifier("BandARM1", w.schema), w.X, w.y, n=2),
        "(NotFittedError|DataError): ",
    ),
    "a finished model fitted again": (
        lambda w: pr.RiskModel(w.model("ARM1").form_).fit(w.X, w.y),
        "PlainriskError: finished",
    ),
    "a clone of a fitted model": (lambda w: clone(w.model("ARM1")).predict(w.X), N),
}


@pytest.mark.parametrize(("call", "expected"), NOT_READY.values(), ids=NOT_READY)
def test_models_that_are_not_ready(judge, call, expected):
    judge(call, expected)


RATES = {
    "0": (lambda w: w.model("ARM1").at_base_rate(0.0), "(Plainrisk|Data)Error: base_rate"),
    "1": (lambda w: w.model("ARM1").at_base_rate(1.0), "(Plainrisk|Data)Error: base_rate"),
    "NaN": (lambda w: w.model("ARM1").at_base_rate(float("nan")), "(Plainrisk|Data)Error: base_rate"),
    "text": (lambda w: w.model("ARM1").at_base_rate("0.1"), "(Plainrisk|Data)Error: base_rate"),
    "percent": (lambda w: w.model("ARM1").at_base_rate(20), "(Plainrisk|Data)Error: base_rate"),
    "tiny": (
        lambda w: w.model("ARM1").at_base_rate(1e-300).predict_proba(w.X)[:, 1],
        lambda r: ((r >= 0) & (r < 1e-6)).all(),
    ),
    "of bands": (lambda w: w.model("BandARM1").at_base_rate(0.1).predict_proba(w.X)[:, 1], lambda r: (r < 1).all()),
    "of a mixture": (lambda w: w.model("MixLinARM1").at_base_rate(0.1), "PlainriskError: mixture"),
    "of a form without a record": (
        lambda w: pr.RiskModel(w.model("ARM1").form_).at_base_rate(0.1),
        "PlainriskError: base rate",
    ),
}


@pytest.mark.parametrize(("call", "expected"), RATES.values(), ids=RATES)
def test_base_rates(judge, call, expected):
    judge(call, expected)


def test_the_text_of_a_model_file_is_the_models(world, tmp_path):
    """The cases above mean little unless the file they start from is read."""
    path = tmp_path / "m.json"
    path.write_text(world.model_text())
    assert np.array_equal(pr.load(path).predict_proba(world.X), world.model("ARM1").predict_proba(world.X))
    assert json.loads(path.read_text())["form"]
