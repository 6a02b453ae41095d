"""Requests made from the service's own description, right and wrong ones: no answer is an error of the service."""

import pytest
from hypothesis import HealthCheck, given, settings

from plainrisk.serve import Settings, Shelf, make_app

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

KEY = "a key for tests, long enough"
HEADERS = {"authorization": f"Bearer {KEY}"}


@pytest.fixture(scope="module")
def described(paths):
    shelf = Shelf(paths[:1])
    shelf.open()
    app = make_app(Settings(models=paths[:1], key=KEY), shelf)
    return schemathesis.openapi.from_asgi("/openapi.json", app, headers=HEADERS)


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
def test_no_request_is_an_error_of_the_service(described, mode):
    statuses = set()
    for operation in described.get_all_operations():
        found = operation.ok()
        if mode.name == "NEGATIVE" and found.method != "post":
            continue  # without a body or a parameter nothing can be wrong

        @settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(found.as_strategy(generation_mode=mode))
        def ask(case):
            answer = case.call(headers=HEADERS)
            statuses.add(answer.status_code)
            assert answer.status_code < 500, (case.path, answer.text)

        ask()
    assert (200 if mode.name == "POSITIVE" else 422) in statuses
