"""The warning that something was chosen which needs a key, and there is none: told when a memory is opened."""

import warnings


class MissingKeyWarning(UserWarning):
    """A summariser or an embedder was chosen that cannot work without a key, and there is none."""


def warn_of_missing_key(setting: str, name: str, variable: str, until: str) -> None:
    """Warn that ``name`` was chosen without a key; ``until``: what holds as long as there is none."""
    warnings.warn(
        f"{setting}={name!r} needs a key, and {variable} is not set: until it is, {until}",
        MissingKeyWarning,
        stacklevel=3,
    )
