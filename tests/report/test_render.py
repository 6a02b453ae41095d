"""A payload becomes HTML: whatever stands in it is shown, never run."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser

import pytest

import plainrisk as pr
from plainrisk.report import Subject, collect, frame, page

HOSTILE = "</script><img src=x onerror=alert(1)>"


class Tags(HTMLParser):
    """Every element, in order, and the text of the payload."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.payload, self._in_payload = [], "", False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._in_payload = ("id", "payload") in attrs

    def handle_data(self, data):
        self.payload += data if self._in_payload else ""

    def handle_endtag(self, tag):
        self._in_payload = False


@pytest.fixture(scope="module")
def hostile():
    rows = {f"age{HOSTILE}": [20, 30, 40, 50] * 30, "job": [HOSTILE, "b"] * 60, "bad": [1, 0, 0, 1, 0, 0] * 20}
    fields = {
        f"age{HOSTILE}": {"reason": f"Too young{HOSTILE}", "special_values": [50]},
        "job": {"kind": "categorical", "note": HOSTILE},
    }
    schema = pr.Schema(target="bad", features=fields, subscales={f"s{HOSTILE}": list(fields)})
    return pr.AdditiveRiskModel(schema).fit(rows, rows["bad"])


def test_names_and_labels_are_inert(hostile):
    payload = collect([Subject(f"model{HOSTILE}", hostile.form_, hostile.fit_record_)])
    found = Tags(page(payload))
    assert "img" not in found.tags
    assert found.tags == Tags(page({"title": "plain", "models": []})).tags
    assert json.loads(found.payload)["models"][0]["name"] == f"model{HOSTILE}"


def test_frame_holds_the_same_page_as_one_attribute(hostile):
    payload = collect([Subject(f"model{HOSTILE}", hostile.form_)])
    text = frame(payload)
    assert Tags(text).tags == ["iframe"]
    inside = html.unescape(re.search(r'srcdoc="([^"]*)"', text)[1])
    assert inside == page(payload)
    assert 'sandbox="allow-scripts"' in text


def test_same_model_gives_the_same_bytes(hostile, tmp_path):
    for name in ("a.html", "b.html"):
        hostile.report(tmp_path / name)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_everything_but_the_payload_and_the_title_is_the_same_for_every_model(hostile):
    def outside(payload):
        text = page(payload)
        return re.sub(r'(<title>.*?</title>)|(id="payload">).*?(?=</script>)', "", text, flags=re.DOTALL)

    assert outside(collect([Subject("one", hostile.form_)])) == outside({"title": "other", "models": []})
