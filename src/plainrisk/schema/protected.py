"""Names of columns that look like attributes that laws protect, in several languages, for the modeller to confirm."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from plainrisk.schema.feature import Feature

__all__ = ["looks_protected", "not_marked"]

# By attribute: words in English, German, French, Spanish, Italian, Portuguese, Dutch and Polish.
_WORDS = {
    "sex": "sex gender male female geschlecht sexe genre sexo genero sesso genere geslacht plec",
    "age": "age alter alder dob birth birthdate birthday birthyear geburt geburtsdatum geburtsjahr naissance edad "
    "nacimiento eta nascita idade nascimento leeftijd geboorte wiek",
    "race or origin": "race racial ethnic ethnicity rasse herkunft etnia raza razza raca etnische rasa",
    "nationality": "nationality national citizen citizenship foreign foreigner immigrant nationalitaet nationalitat "
    "staatsangehoerigkeit staatsangehorigkeit auslaender auslander gastarbeiter nationalite nacionalidad "
    "extranjero nazionalita nacionalidade nationaliteit obywatelstwo",
    "marital status": "marital married marriage spouse familienstand verheiratet matrimonial civil casado coniugale "
    "sposato estadocivil burgerlijke malzenski",
    "religion": "religion religious faith konfession religione religiao godsdienst religia wyznanie",
    "disability": "disability disabled handicap behinderung handicape discapacidad disabilita deficiencia "
    "niepelnosprawnosc",
    "place of living, a proxy for origin": "zip zipcode postcode postal plz postleitzahl",
}
_ATTRIBUTE = {word: attribute for attribute, words in _WORDS.items() for word in words.split()}
# Words that make something else of the one before or after them.
_OTHERWISE = {"account", "credit", "employment", "file", "loan", "mortgage", "oldest", "newest", "average", "trade"}


def looks_protected(name: str) -> str | None:
    """Return the attribute that the name of a column seems to be about, or None.

    >>> looks_protected("Age in years"), looks_protected("customerGender"), looks_protected("mortgage")
    ('age', 'sex', None)
    >>> looks_protected("account_age"), looks_protected("zip_code"), looks_protected("género")
    (None, 'place of living, a proxy for origin', 'sex')
    """
    spelt = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    letters = "".join(c for c in spelt if not unicodedata.combining(c))
    words = {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+", letters)}
    if _OTHERWISE & words:
        return None
    return next((attribute for word, attribute in _ATTRIBUTE.items() if word in words), None)


def not_marked(features: Mapping[str, Feature]) -> dict[str, str]:
    """Return the features that look protected and are not marked as such, each with the attribute."""
    seen = {name: looks_protected(name) for name, feature in features.items() if not feature.protected}
    return {name: attribute for name, attribute in seen.items() if attribute is not None}
