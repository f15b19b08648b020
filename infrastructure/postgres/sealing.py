"""Seal payloads with a random key each: erasing the key erases the payload wherever copies of its bytes are.

The frame of an event stays readable, except for its salt, with which a short text could be guessed from the digest.
So a damaged or lost payload takes neither the place of its event nor the chain with it.
"""

import secrets
from typing import NamedTuple

from refold.infrastructure.event_store.envelope import ERASED, MAGIC

KEY_BYTES = 32
SALT = 3
"""Index of the salt among the fields of a frame."""
HIDDEN = b"*"
_NONCE = bytes(12)
"""A key seals once, so its nonce need not differ."""


class Sealed(NamedTuple):
    """Bytes to store and the key that opens them."""

    state: bytes
    key: bytes


def seal_state(stream: str, version: int, state: bytes) -> Sealed:
    """Seal the bytes of an event for a place, with a new key (AES-256-GCM)."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    head, secret = b"", state
    if state.startswith((MAGIC, ERASED)):
        frame, _, payload = state.partition(b"\n")
        fields = frame.split(b" ")
        secret = fields[SALT] + b"\n" + payload
        fields[SALT] = HIDDEN
        head = b" ".join(fields) + b"\n"
    key = secrets.token_bytes(KEY_BYTES)
    return Sealed(head + AESGCM(key).encrypt(_NONCE, secret, _bound(stream, version, head)), key)


def open_state(stream: str, version: int, state: bytes, key: bytes | None) -> bytes:
    """Return the bytes that were sealed for a place.

    Without the right key, or if the bytes were changed, return the frame alone: every reader then finds that the
    content differs from its digest, and reports the place.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    head, hidden = b"", state
    if state.startswith((MAGIC, ERASED)):
        frame, newline, hidden = state.partition(b"\n")
        head = frame + newline
    try:
        secret = AESGCM(key or b"").decrypt(_NONCE, hidden, _bound(stream, version, head))
    except (InvalidTag, ValueError):
        return head
    if not head:
        return secret
    salt, _, payload = secret.partition(b"\n")
    fields = head[:-1].split(b" ")
    fields[SALT] = salt
    return b" ".join(fields) + b"\n" + payload


def _bound(stream: str, version: int, head: bytes) -> bytes:
    return f"{stream}\0{version}\0".encode("utf-8", "surrogatepass") + head
