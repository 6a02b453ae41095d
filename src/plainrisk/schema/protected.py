"""Names of columns that look like attributes that laws protect, in several languages, for the modeler to confirm."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from itertools import pairwise

from plainrisk.schema.feature import Feature

__all__ = ["looks_protected", "not_marked"]

# By attribute: words in English, German, French, Spanish, Italian, Portuguese, Dutch and Polish.
_WORDS = {
    "sex": "sex gender male female geschlecht anrede sexe genre sexo genero sesso genere geslacht plec",
    "age": "age alter alder dob birth birthdate birthday birthyear geburt geburts geburtsdatum geburtsjahr naissance "
    "edad nacimiento eta nascita idade nascimento leeftijd geboorte wiek",
    "race or origin": "race racial ethnic ethnicity rasse herkunft etnia raza razza raca etnische rasa",
    "nationality": "nationality national citizen citizenship foreign foreigner immigrant nationalitaet nationalitat "
    "staatsangehoerigkeit staatsangehorigkeit auslaender auslander gastarbeiter nationalite nacionalidad "
    "extranjero nazionalita nacionalidade nationaliteit obywatelstwo",
    "marital status": "marital married marriage spouse familienstand verheiratet matrimonial casado coniugale "
    "sposato estadocivil burgerlijke malzenski",
    "religion": "religion religious religionszugehorigkeit faith konfession religione religiao godsdienst "
    "religia wyznanie",
    "disability": "disability disabled handicap behinderung handicape discapacidad disabilita deficiencia "
    "niepelnosprawnosc",
    "place of living, a proxy for origin": "zip zipcode postcode postal plz postleitzahl",
}
_ATTRIBUTE = {word: attribute for attribute, words in _WORDS.items() for word in words.split()}
# Words next to which "age" is not a person's age, unless the name says whose it is.
_THINGS = {"account", "average", "credit", "employment", "file", "konto", "kontos", "loan"}
_THINGS |= {"mortgage", "newest", "oldest", "trade", "vehicle"}
_PEOPLE = {"applicant", "borrower", "client", "customer", "holder", "person"}
_SPELLED = {ord("ß"): "ss", ord("ł"): "l", ord("Ł"): "L", ord("ø"): "o"}  # what normalization leaves alone
_CIVIL = {"estado civil", "etat civil", "stato civile"}


def looks_protected(name: str) -> str | None:
    """Return the attribute that the name of a column seems to be about, or None.

    >>> looks_protected("Age in years"), looks_protected("customerGender"), looks_protected("mortgage")
    ('age', 'sex', None)
    >>> looks_protected("account_age"), looks_protected("zip_code"), looks_protected("género")
    (None, 'place of living, a proxy for origin', 'sex')
    """
    spelled = unicodedata.normalize("NFKD", name.translate(_SPELLED))
    letters = "".join(c for c in spelled if not unicodedata.combining(c))
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+", letters)]
    if any(" ".join(pair) in _CIVIL for pair in pairwise(words)):
        return "marital status"
    found = next((attribute for word, attribute in _ATTRIBUTE.items() if word in words), None)
    of_a_thing = found == "age" and _THINGS.intersection(words) and not _PEOPLE.intersection(words)
    return None if of_a_thing else found


def not_marked(features: Mapping[str, Feature]) -> dict[str, str]:
    """Return the features that look protected and are not marked as such, each with the attribute."""
    seen = {name: looks_protected(name) for name, feature in features.items() if not feature.protected}
    return {name: attribute for name, attribute in seen.items() if attribute is not None}
