"""What is said of the form of a setting: the same in the table of settings and where a value is refused."""

from typing import Any

import pytest

import refold
from refold.infrastructure.cli.serve_commands import all_settings
from refold.infrastructure.event_store.encryption import KEY_FORM

FORMS = {"embedder_key": "a string", "encryption_key": KEY_FORM}


@pytest.mark.parametrize("name", FORMS)
def test_each_secret_is_described_by_the_form_of_its_own(name: str) -> None:
    row = next(row for row in all_settings() if row.name == name)
    assert row.type == FORMS[name]


@pytest.mark.parametrize("name", FORMS)
def test_a_secret_of_another_form_is_refused_with_the_one_it_must_have(name: str) -> None:
    given: dict[str, Any] = {name: 5} if name == "embedder_key" else {name: "short"}
    with pytest.raises(refold.InvalidSetting) as refused:
        refold.open(":memory:", **given)
    assert str(refused.value).endswith(f"must be {FORMS[name]}")
