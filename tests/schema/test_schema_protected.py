"""Names that look protected: marked in a draft, and told of where a schema leaves them unmarked."""

from __future__ import annotations

import warnings

import pytest

import plainrisk as pr
from plainrisk.errors import PlainriskWarning
from plainrisk.schema.findings import by_feature
from plainrisk.schema.protected import looks_protected

PROTECTED = {
    "sex": [
        "sex",
        "SEX",
        "Gender",
        "customer_gender",
        "applicantSex",
        "Geschlecht",
        "sexo",
        "género",
        "Personal sex",
        "płeć",
        "credit_applicant_gender",
        "Anrede",
    ],
    "age": [
        "age",
        "Age in years",
        "AGE_YEARS",
        "birthDate",
        "date_of_birth",
        "Alter",
        "idade",
        "età",
        "leeftijd",
        "age_of_account_holder",
    ],
    "race or origin": ["race", "Ethnicity", "applicant_race", "Herkunft"],
    "nationality": ["nationality", "foreign worker", "citizenship", "Staatsangehörigkeit", "nationalité"],
    "marital status": ["marital_status", "MARRIAGE", "Familienstand", "estado_civil", "état civil"],
    "religion": ["religion", "Konfession"],
    "disability": ["disability", "is_disabled", "discapacidad"],
    "place of living, a proxy for origin": ["zip", "zip_code", "ZIP", "postcode", "PLZ"],
}
OTHERS = ["mortgage", "percentage", "average_age", "account_age", "Age of oldest trade", "wages", "usage", "language_x"]
OTHERS += ["essex", "trace", "stage", "message", "Credit amount", "embrace", "zipper", "alternative", "loan_age", ""]
OTHERS += ["Alter_des_Kontos", "civil_case", "vehicle_age"]


@pytest.mark.parametrize(("attribute", "name"), [(a, name) for a, names in PROTECTED.items() for name in names])
def test_names_that_look_protected(attribute, name):
    assert looks_protected(name) == attribute


@pytest.mark.parametrize("name", OTHERS)
def test_names_that_do_not(name):
    assert looks_protected(name) is None


def test_a_draft_marks_them_for_a_person_to_confirm(tmp_path):
    frame = {"gender": ["m", "f", "f", "m"] * 9, "debt": list(range(1, 37)), "bad": [0, 1] * 18}
    with pytest.warns(
        PlainriskWarning, match="assumed to be protected because of their names, so never given as a reason: 'gender'"
    ):
        schema = pr.Schema.infer(frame, "bad")
    assert schema.protected == ("gender",)
    assert schema.features["gender"].actionable == "fixed"
    assert any(f.kind == "protected" and "sex: confirm" in f.text for f in by_feature(schema.findings)["gender"])
    schema.save(tmp_path / "draft.toml")
    text = (tmp_path / "draft.toml").read_text()
    assert "protected = true" in text
    assert "# protected, since its name suggests sex: confirm" in text
    assert pr.Schema.load(tmp_path / "draft.toml").protected == ("gender",)


def fitted(**fields):
    frame = {"gender": [0.0, 1.0] * 40, "debt": [float(i % 7) for i in range(80)]}
    schema = pr.Schema(features={"gender": fields, "debt": {}})
    return pr.AdditiveRiskModel(schema).fit(frame, [i % 3 == 0 for i in range(80)])


@pytest.mark.filterwarnings("always")
def test_a_fit_says_what_it_reads_and_what_is_not_marked():
    with pytest.warns(PlainriskWarning, match=r"reads protected features: 'gender'.*schema\.drop\('gender'\)"):
        fitted(protected=True)
    with pytest.warns(PlainriskWarning, match="look protected by their names, .* does not mark them: 'gender'"):
        fitted()


def test_without_a_schema_nothing_is_said():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pr.AdditiveRiskModel().fit({"gender": [0.0, 1.0] * 40}, [i % 3 == 0 for i in range(80)])


def test_features_without_words():
    features = {"a": {"label": "A"}, "b": {"reason": "B is high"}, "c": {}, "d": {"protected": True}}
    assert pr.Schema(features=features).wordless == ("c",)
