"""The description of the app, and the app held to it: whatever is sent, no inner fault."""

import re

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings as hypothesis_settings, strategies as st
from patience import SECONDS
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from wassemble.inputs import Predictions, write_predictions

TOKEN = "correct horse battery"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
FILES = ["first.csv", "second.csv", "broken.csv", "../out.csv", "nowhere.csv"]
# What leads somewhere: made-up values alone would never get past the first look-up.
USUAL = {
    "example": ["languages", "", "", ""],
    "file": [[], FILES[:1], FILES[:2], FILES[2:3], FILES[3:4], FILES],
    "kernel": ["", "names", "spelling", "attributes", "kernel"],
    "kernel_file": ["", "", *FILES],
    "names": ["", "", "names.csv", *FILES],
    "sample": ["", "photo", "nobody"],
    "label": ["", "cat", "nothing"],
    "model": ["", "first", "nobody"],
    "search": ["", "ph"],
    "next": ["/", "//evil.example"],
    "study": [1],
    "rater": [1, 2, 9],
    "number": [1, 2, 10**6],
}


@pytest.fixture(scope="module")
def described(serve, tmp_path_factory):
    folder = tmp_path_factory.mktemp("described")
    for name, scores in (("first", [[0.3, 0.7], [0.5, 0.5]]), ("second", [[0.9, 0.1], [0, 1]])):
        table = Predictions(name, ["photo", "<b>"], ["cat", "<script>"], scores)
        write_predictions(folder / f"{name}.csv", table)
    (folder / "names.csv").write_text("label,name\ncat,house cat\n")
    (folder / "broken.csv").write_text("sample,cat\nphoto,many\n")
    with serve(folder, "--token", TOKEN) as server:
        yield server


@pytest.fixture(scope="module")
def secrets(described):
    """Links of the raters of a study; the first has agreed to take part."""
    with httpx.Client(
        base_url=described.url, headers=HEADERS, follow_redirects=True, timeout=SECONDS
    ) as client:
        for access in ("links", "links", "join"):  # the second may be deleted
            data = {"is_example": "true", "n_raters": "3", "access": access}
            made = client.post("/studies", data=data)
            assert made.status_code == 200, made.text
        USUAL["key"] = re.findall(r"/join/([\w-]{12})", made.text)[:1]
        found = re.findall(r"/rate/([\w-]{32})", client.get("/studies/1").text)
        client.post(f"/rate/{found[0]}/consent", data={"agrees": "true"}).raise_for_status()
    return sorted(set(found))


def test_whatever_is_sent_the_answer_is_as_described(described, secrets):
    schema = schemathesis.openapi.from_url(f"{described.url}/api/openapi.json", headers=HEADERS)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 20
    wrong = []
    for operation in operations:

        @hypothesis_settings(
            max_examples=8, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
        )
        @given(case=operation.as_strategy(), data=st.data())
        def check(case, data):
            steer(case, data, secrets)
            answer = case.call(headers=HEADERS, allow_redirects=False, timeout=SECONDS)
            case.validate_response(answer, checks=CHECKS, headers=HEADERS)
            assert "content-security-policy" in answer.headers

        try:
            check()
        except FailureGroup as error:
            wrong.append(f"{operation.label}: {error}")
    assert not wrong, "\n".join(wrong)


def steer(case, data, secrets):
    """Put values that lead somewhere in place of some that were made up."""
    known = USUAL | {"secret": secrets}
    if case.path.endswith("/delete"):
        known["study"] = [2]
    for values in (case.query, case.path_parameters):
        for name in sorted(set(values or {}) & set(known)):
            if data.draw(st.integers(0, 3)):
                values[name] = data.draw(st.sampled_from(known[name]))


def test_every_operation_is_described_in_words(described):
    found = httpx.get(f"{described.url}/api/openapi.json", headers=HEADERS, timeout=SECONDS).json()
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            assert operation.get("description"), (method, path)
            assert {"401", "413", "422", "429", "503"} <= set(operation["responses"])
