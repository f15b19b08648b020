"""No setting of the machine that runs the tests reaches them."""

import os

import pytest


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.upper().startswith("REFOLD_") and not name.upper().startswith("REFOLD_X_"):
            monkeypatch.delenv(name)
