"""Keys and cipher of an encrypted log: AES-256-GCM, bound to the place of each event."""

import hmac
import os
import re
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

import pydantic

from refold.application.errors import LogLocked
from refold.domain.errors import InvalidSetting

from .envelope import PROOF_BYTES, EnvelopeError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
NONCE_BYTES = 12
KEY_FORM = "32 bytes as 64 hexadecimal digits or as base64"
WHERE = "REFOLD_ENCRYPTION_KEY or the option encryption_key"

KeyCallback = Callable[[str | None], bytes | str]
"""A function that returns the key with this fingerprint, or the key to write with for None."""
KeySource = bytes | str | KeyCallback


class Key(NamedTuple):
    """A key and its fingerprint. The fingerprint may be shown; the key is stored nowhere else."""

    fingerprint: str
    cipher: "AESGCM"
    prover: bytes
    """Secret for making proofs, derived from the key."""

    def __repr__(self) -> str:
        """Return a representation with the fingerprint only."""
        return f"Key({self.fingerprint})"

    def proof(self, said: bytes) -> bytes:
        """Return the fingerprint and a proof for ``said`` that cannot be made without the key."""
        return (
            bytes.fromhex(self.fingerprint) + hmac.digest(self.prover, said, "sha256")[:PROOF_BYTES]
        )

    def proves(self, said: bytes, proof: bytes) -> bool:
        """Return whether ``proof`` was made for ``said`` with this key."""
        return hmac.compare_digest(proof, self.proof(said))

    def encrypt(self, plain: bytes, bound: bytes) -> bytes:
        """Return the encrypted bytes after a new nonce."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self.cipher.encrypt(nonce, plain, bound)

    def decrypt(self, stored: bytes, bound: bytes) -> bytes:
        """Return the decrypted bytes.

        Raises:
            EnvelopeError: the bytes were changed, or are bound to another place.
        """
        from cryptography.exceptions import InvalidTag

        try:
            return self.cipher.decrypt(stored[:NONCE_BYTES], stored[NONCE_BYTES:], bound)
        except (InvalidTag, ValueError):
            raise EnvelopeError("the encrypted content was changed or moved") from None


class Keys:
    """The keys of a process. Each is requested once."""

    def __init__(self, source: KeySource | None = None) -> None:
        """Create keys from a key, a callback that returns keys, or None for no encryption.

        Raises:
            InvalidSetting: the key is not valid, or a library for encryption is missing.
            LogLocked: the callback returned no key to write with.
        """
        self._ask: KeyCallback | None = source if callable(source) else None
        self._known: dict[str, Key] = {}
        self.writing: Key | None = None
        """Key that new events are encrypted with, or None."""
        if source is not None:
            self.writing = key_of(self._ask_for(None) if callable(source) else source)
            self._known[self.writing.fingerprint] = self.writing

    @property
    def fingerprint(self) -> str | None:
        """Fingerprint of the key to write with, or None without encryption."""
        return None if self.writing is None else self.writing.fingerprint

    def has(self, fingerprint: str) -> bool:
        """Return whether the key with this fingerprint is already loaded."""
        return fingerprint in self._known

    def key(self, fingerprint: str) -> Key:
        """Return the key with this fingerprint.

        Raises:
            LogLocked: the key was not given; the message names the fingerprint.
        """
        known = self._known.get(fingerprint)
        if known is None:
            if self._ask is None:
                raise self._locked_error(fingerprint)
            known = key_of(self._ask_for(fingerprint))
            if known.fingerprint != fingerprint:
                raise LogLocked(
                    f"the log is encrypted with the key {fingerprint}, but the callback encryption_key "
                    f"returned {known.fingerprint} for it; nothing was changed"
                )
            self._known[fingerprint] = known
        return known

    def _ask_for(self, fingerprint: str | None) -> bytes | str:
        assert self._ask is not None
        wanted = "to write with" if fingerprint is None else fingerprint
        try:
            return self._ask(fingerprint)
        except Exception as error:
            # The text of the error may contain a key, so only its type is reported.
            raise LogLocked(
                f"the callback encryption_key failed for the key {wanted} "
                f"({type(error).__name__}); nothing was changed"
            ) from error

    def _locked_error(self, fingerprint: str) -> LogLocked:
        if self.writing is None:
            return LogLocked(
                f"the log is encrypted with the key {fingerprint}, but no key was given; set it with "
                f"{WHERE}"
            )
        return LogLocked(
            f"the log is encrypted with the key {fingerprint}, but the given key is "
            f"{self.writing.fingerprint}; set the right one with {WHERE} (after a change of keys, use a "
            "callback that returns both). Nothing was changed"
        )


def key_of(given: object) -> Key:
    """Parse a key that is given as bytes or text.

    Raises:
        InvalidSetting: the value is not a key, or the library for encryption is missing.
    """
    raw = raw_key(given)
    if raw is None:
        raise InvalidSetting(f"encryption_key: must be {KEY_FORM}", setting="encryption_key")
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise InvalidSetting(
            "encryption needs cryptography, which is not installed: "
            "pip install 'refold[encryption]'",
            setting="encryption_key",
        ) from None
    # A digest of 256 random bits reveals nothing about them. The prefix separates it from digests
    # with other purposes.
    fingerprint = sha256(b"refold key\0" + raw).hexdigest()[:16]
    return Key(fingerprint, AESGCM(raw), sha256(b"refold proof\0" + raw).digest())


def hide_key(given: bytes | str) -> "pydantic.SecretStr":
    """Return a key as text that is hidden when printed."""
    if isinstance(given, bytes):
        whole = len(given) == KEY_BYTES
        return pydantic.SecretStr(given.hex() if whole else given.decode("ascii", "replace"))
    return pydantic.SecretStr(given)


def raw_key(given: object) -> bytes | None:
    """Return the 32 bytes of a key in any of its forms, or None if it is not a key."""
    if isinstance(given, bytes):
        if len(given) == KEY_BYTES:
            return given
        given = given.decode("ascii", "replace")
    if not isinstance(given, str):
        return None
    text = given.strip()
    if re.fullmatch(r"[0-9A-Fa-f]{64}", text):
        return bytes.fromhex(text)
    if not re.fullmatch(r"[A-Za-z0-9+/_-]{43}=?", text):
        return None
    import binascii
    from base64 import urlsafe_b64decode

    try:
        raw = urlsafe_b64decode(text.rstrip("=").replace("+", "-").replace("/", "_") + "=")
    except binascii.Error:
        return None
    return raw if len(raw) == KEY_BYTES else None
