"""The container file: what it runs exists, as a plain user, and nothing but the service is in it."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from plainrisk.cli.commands import load_command
from plainrisk.errors import PlainriskError
from plainrisk.serve import Settings, make_app

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not (ROOT / "Containerfile").is_file(), reason="this is an installed package")


@pytest.fixture(scope="module")
def stages():
    """The instructions of each stage: pairs of a word and its text."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Containerfile").read_text(encoding="utf-8"))
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    found = [[]]
    for word, rest in lines:
        if word == "FROM":
            found.append([])
        found[-1].append((word, rest))
    return found[1:]


def of(stage, word):
    return [text for own, text in stage if own == word]


def test_it_runs_as_a_plain_user_who_owns_nothing(stages):
    last = stages[-1]
    (user,) = of(last, "USER")
    assert re.fullmatch(r"[1-9]\d{4,}:[1-9]\d{4,}", user), "a number, so that an orchestrator sees that it is not root"
    words = [word for word, _ in last]
    assert words.index("USER") > max(i for i, word in enumerate(words) if word in ("COPY", "RUN"))
    assert not any("--chown" in text or "chmod" in text for _, text in last)


def test_nothing_is_fetched_but_packages(stages):
    known = {"ARG", "FROM", "RUN", "COPY", "WORKDIR", "ENV", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
    for stage in stages:
        assert {word for word, _ in stage} <= known  # ADD, which unpacks and fetches, is not among them
        (base,) = of(stage, "FROM")
        assert re.match(r"python:\$\{PYTHON\}-slim( AS \w+)?$", base)
        for text in of(stage, "RUN"):
            assert not re.search(r"curl|wget|sudo|\| *sh", text)
            assert "apt-get" not in text or "rm -rf /var/lib/apt/lists" in text
    assert not any("apt-get" in text or "pip" in text for text in of(stages[-1], "RUN")), "no compiler in what runs"


def test_what_is_copied_and_installed_exists(stages):
    built, last = stages
    sources = [source for text in of(built, "COPY") for source in text.split()[:-1]]
    assert sources
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for source in sources:
        assert (ROOT / source).exists()
        assert f"!{source}" in ignored, "the file of what is left out lets it in"
    (extras,) = re.findall(r"\.\[([a-z,]+)\]", " ".join(of(built, "RUN")))
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {"cli", "serve", "sign"} <= set(extras.split(",")) <= set(known)
    assert all(text.startswith("--from=build ") for text in of(last, "COPY"))


def test_the_command_is_one_of_ours_and_needs_a_key(stages):
    (entry,), (given,) = of(stages[-1], "ENTRYPOINT"), of(stages[-1], "CMD")
    program, name, *words = json.loads(entry) + json.loads(given)
    assert program == "plainrisk"
    read = load_command(name).make_context(name, words).params
    assert read["host"] == "0.0.0.0"
    assert str(read["port"]) == of(stages[-1], "EXPOSE")[0]
    assert [Path(path).parent for path in read["models"]] == [Path("/models")]
    with pytest.raises(PlainriskError, match="PLAINRISK_API_KEY"):
        Settings(models=tuple(map(str, read["models"])), host=read["host"])
    assert not any("KEY" in text.partition("=")[0] for text in of(stages[-1], "ENV")), "a key comes when it is started"


def test_its_health_is_asked_where_the_service_answers(stages):
    (text,) = of(stages[-1], "HEALTHCHECK")
    (port, path) = re.search(r"http://127\.0\.0\.1:(\d+)(/[a-z/]+)", text).groups()
    assert port == of(stages[-1], "EXPOSE")[0]
    assert path in [route.path for route in make_app(Settings(models=("model.json",))).routes]
    assert re.search(r'CMD \["python", "-c", ', text)
    compile(json.loads(text.partition("CMD ")[2])[2], "health", "exec")
