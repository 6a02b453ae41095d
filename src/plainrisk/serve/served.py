"""Models in service: read, certified again, and replaced when their file is."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plainrisk.errors import ModelFileError, PlainriskError
from plainrisk.explain import certify
from plainrisk.export.words import example_of
from plainrisk.files import SIZE_LIMIT, read_text
from plainrisk.form import form_hash
from plainrisk.form.file import Certificate, parse_model
from plainrisk.model import RiskModel, loaded
from plainrisk.report import Subject, collect, page
from plainrisk.serve.change import Change, change_of, require_same_task
from plainrisk.serve.requests import Requests
from plainrisk.signing import check_signature, read_public_key, signature_path

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

__all__ = ["Served", "Shelf", "stamp_of"]

Stamp = tuple[int, ...]

MOST_PREPARED = 64  # explainers, reasoners and planners that a model keeps, one for each set of options


@dataclass(frozen=True)
class Served:
    """One model, ready.

    Attributes
    ----------
    name : the file's name without its ending
    text : of the file when it was read, for workers that start later
    model, sha256 : the model and the hash of its form
    certificate : made when the file was read
    requests : how rows for this model are read
    """

    name: str
    text: str = field(repr=False)
    model: RiskModel
    sha256: str
    certificate: Certificate
    requests: Requests
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def read(cls, path: Path, key: EllipticCurvePublicKey | None = None) -> Served:
        """Read a model file; if its certificate does not hold or its signature is missing, it is not served.

        Parameters
        ----------
        path : of the model file
        key : that must have signed it, if any
        """
        check = None if key is None else functools.partial(check_signature, path=path, key=key)
        text = read_text(path, limit=SIZE_LIMIT, error=ModelFileError, check=check)
        model = loaded(parse_model(text, path), path)
        certificate = certify(model.form_)
        if not certificate.valid:
            broken = "; ".join(check.name for check in certificate.checks if not check.holds)
            raise ModelFileError(f"{path}: the certificate does not hold ({broken}), so the model is not served.")
        example = {name: example_of(model.form_, name) for name in model.form_.features}
        return cls(path.stem, text, model, form_hash(model.form_), certificate, Requests(model.form_, example))

    @property
    def identity(self) -> dict[str, str]:
        """The name and hash that every answer contains."""
        return {"name": self.name, "sha256": self.sha256}

    @functools.cached_property
    def page(self) -> str:
        """The decision page of the model."""
        model = self.model
        subject = Subject(self.name, model.form_, model.fit_record_, model.about)
        return page(collect([subject], title=self.name))

    def prepared(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what was prepared for these options before, or prepare it now."""
        prepared = self._kept.get(key)
        if prepared is None:
            prepared = make()
            with self._lock:
                if len(self._kept) >= MOST_PREPARED:
                    self._kept.pop(next(iter(self._kept)))
                self._kept[key] = prepared
        return prepared


class Shelf:
    """The models by name; when a file is replaced, it is read again, and until then the old model answers.

    Parameters
    ----------
    paths : of the model files
    key : the file of the public key that must have signed them, if any
    """

    def __init__(self, paths: Iterable[str | Path], key: str | Path | None = None) -> None:
        self.key = None if key is None else read_public_key(key)
        self.paths: dict[str, Path] = {}
        for path in map(Path, paths):
            if path.stem in self.paths:
                raise PlainriskError(f"serve: {self.paths[path.stem]} and {path} have the same name. Rename one.")
            self.paths[path.stem] = path
        self._stamps: dict[str, Stamp | None] = {}
        self._served: dict[str, Served] = {}

    @property
    def ready(self) -> bool:
        """Whether every model was read and certified."""
        return len(self._served) == len(self.paths)

    @property
    def models(self) -> Mapping[str, Served]:
        """The models that are ready, the first one first."""
        return {name: self._served[name] for name in self.paths if name in self._served}

    @property
    def first(self) -> Served | None:
        """The model that answers where none is named."""
        return next(iter(self.models.values()), None)

    def open(self) -> None:
        """Read all models, or raise an error that says what is wrong with one of them."""
        for name, path in self.paths.items():
            self._stamps[name] = self._stamp(path)
            self._served[name] = Served.read(path, self.key)

    def refresh(self) -> Iterator[tuple[str, Change | PlainriskError]]:
        """Read models whose file was replaced; yield their names with what changed, or why the old one stays."""
        for name, path in self.paths.items():
            stamp = self._stamp(path)
            if stamp is None or stamp == self._stamps.get(name):
                continue
            self._stamps[name] = stamp
            old = self._served[name]
            try:
                new = Served.read(path, self.key)
                require_same_task(old.model, new.model, path)
            except PlainriskError as error:
                yield name, error
                continue
            self._served[name] = new
            yield name, change_of(old.model, new.model, old.requests.example)

    def _stamp(self, path: Path) -> Stamp | None:
        """Return what changes when a model or its signature is replaced; None while the model file is absent."""
        stamp = stamp_of(path)
        return stamp if stamp is None or self.key is None else (*stamp, *(stamp_of(signature_path(path)) or ()))


def stamp_of(path: Path) -> Stamp | None:
    """Return what changes when a file is replaced; None while it is absent."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
