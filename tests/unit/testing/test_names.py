"""The public names of ``refold.testing``: all there, and Hypothesis is asked for where it is needed."""

import subprocess
import sys

import pytest

import refold.testing

WITHOUT_HYPOTHESIS = """
import sys
sys.modules["hypothesis"] = None
import refold.testing
from refold.testing import CheckFailed, check_embedder, check_store, check_summariser, given
from refold.testing import check_token_counter
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
check_token_counter(EstimatingTokenCounter())
for name in ("histories", "ConversationMachine"):
    try:
        getattr(refold.testing, name)
    except ImportError as error:
        print(error)
"""
LOADED = "import refold.testing, sys; print('hypothesis' in sys.modules)"


def printed(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", refold.testing.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(refold.testing, name) is not None
    assert name in dir(refold.testing)


def test_an_unknown_name_is_none() -> None:
    with pytest.raises(AttributeError, match="check_everything"):
        _ = refold.testing.check_everything


def test_without_hypothesis_the_checks_work_and_the_rest_says_what_to_install() -> None:
    told = printed(WITHOUT_HYPOTHESIS).splitlines()
    assert len(told) == 2
    assert all("pip install 'refold[testing]'" in line for line in told)


def test_hypothesis_is_loaded_when_it_is_needed_alone() -> None:
    assert printed(LOADED).strip() == "False"
