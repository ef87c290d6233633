"""schemathesis asks the running service whatever its own description allows, and much that it does not.

Not checked: that all that is described is taken and all else refused. The language of a text, or a token, is described
as any word, and a form has numbers as digits.
"""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from served import EN_DE, post

from regard.serving.limits import TextLimits
from regard.serving.openapi import specification

OPERATIONS = [
    (path, method) for path, methods in specification(TextLimits(), "")["paths"].items() for method in methods
]
every_operation = pytest.mark.parametrize(("path", "method"), OPERATIONS, ids=lambda one: one.strip("/"))


@pytest.fixture(scope="module")
def published(service):
    """The description as the service gives it."""
    schemathesis = pytest.importorskip("schemathesis")
    return schemathesis.openapi.from_url(service + "/spec")


def explore(running, operation, examples):
    """No 5xx, and no answer of another status, kind or form than the description has for it."""
    from schemathesis import GenerationMode, checks

    wanted = [
        checks.not_a_server_error,
        checks.content_type_conformance,
        checks.response_headers_conformance,
        checks.response_schema_conformance,
        checks.status_code_conformance,
    ]
    modes = [GenerationMode.POSITIVE, *([GenerationMode.NEGATIVE] if operation.body else [])]
    for mode in modes:

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy(generation_mode=mode))
        def test(case):
            case.call_and_validate(checks=wanted, timeout=120)

        test()
    assert [entry for entry in running.entries() if entry["event"] == "error"] == []
    assert post(running.address, "/translate", {"q": "abc", **EN_DE})["translatedText"]


@every_operation
def test_the_service_is_as_it_is_described(running, published, path, method):
    explore(running, published[path][method.upper()], 8)


@pytest.mark.slow
@every_operation
def test_the_service_is_as_it_is_described_however_long_one_asks(running, published, path, method):
    explore(running, published[path][method.upper()], 500)
