"""JSON Web Key Sets (RFC 7517): keys that verify tokens, each with its id and accepted algorithms."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from interpulse.authentication.signing_keys import PublicKey, UnusableKey, file_stamp, read_key, secret_key, signatures

_logger = logging.getLogger(__name__)

_MANY: Final = 10
"""More keys than a rotation needs; a token without an id would have to try them all."""


class VerifyingKey(NamedTuple):
    """A key, and the signature algorithms that are accepted with it, whatever a token claims."""

    key: bytes | PublicKey
    signatures: tuple[str, ...]


def verifying_key(described: Mapping[str, Any]) -> VerifyingKey:
    """Return a key of a set. A key that names its algorithm is for that one alone. Raise UnusableKey."""
    try:
        key = jwt.PyJWK({name: value for name, value in described.items() if name != "alg"}).key
    except (jwt.PyJWTError, ValueError, TypeError) as error:  # numbers and letters that form no key
        raise UnusableKey(f"it is not a key of RSA, of a curve, or a secret (kty RSA, EC or oct): {error}") from None
    if isinstance(key, bytes):
        secret_key(key)
    elif not isinstance(key, RSAPublicKey | EllipticCurvePublicKey):
        raise UnusableKey("it is a private key, or of a kind that is not accepted; give the public key")
    fitting, algorithm = signatures(key), described.get("alg")
    if not fitting:
        raise UnusableKey("a key of RSA needs 2048 bits or more, a curve is one of P-256, P-384 and P-521")
    if algorithm is None:
        return VerifyingKey(key, fitting)
    if algorithm not in fitting:
        raise UnusableKey(f"its alg is {algorithm!r}, and it is for {', '.join(fitting)}")
    return VerifyingKey(key, (algorithm,))


def read_key_set(content: bytes) -> dict[str, VerifyingKey]:
    """Return the keys of a set by their ids, without keys that are not for signatures.

    Raise UnusableKey with the key if one cannot be used, or if none remains.
    """
    try:
        listed = json.loads(content)["keys"]
    except (ValueError, TypeError, KeyError, RecursionError):
        listed = None
    if not isinstance(listed, list):
        raise UnusableKey('it is not a JSON Web Key Set: {"keys": [...]}')
    keys: dict[str, VerifyingKey] = {}
    for number, described in enumerate(listed, 1):
        key_id = described.get("kid") if isinstance(described, dict) else None
        if not isinstance(key_id, str) or not key_id:
            raise UnusableKey(f"key {number} of the set has no kid, by which tokens name it")
        if key_id in keys:
            raise UnusableKey(f"two keys of the set have the kid {key_id!r}")
        if described.get("use", "sig") != "sig":
            continue
        try:
            keys[key_id] = verifying_key(described)
        except UnusableKey as error:
            raise UnusableKey(f"key {key_id!r} of the set cannot be used: {error}") from None
    if not keys:
        raise UnusableKey("the set has no key for signatures")
    return keys


def json_key(key: bytes | PublicKey, key_id: str) -> dict[str, Any]:
    """Return a key as an entry of a set, with its algorithm if it is for only one."""
    fitting = signatures(key)
    described = jwt.get_algorithm_by_name(fitting[0]).to_jwk(key, as_dict=True)
    described.pop("key_ops", None)
    return {"kid": key_id, "use": "sig"} | ({"alg": fitting[0]} if len(fitting) == 1 else {}) | described


class KeySet:
    """The keys of ``tokenValidationKeysJwks``, read again when their file changes (PIP-490)."""

    def __init__(self, source: str, refresh_seconds: int, now: Callable[[], float] = time.monotonic) -> None:
        """Read the set from ``source``: ``file:...``, ``data:...``, a path or base64.

        The source is checked again once in ``refresh_seconds``; 0: never. Raise UnusableKey.
        """
        self._source = source
        self._refresh_seconds = refresh_seconds
        self._now = now
        self._looked_at = now()
        self.failures = 0
        """The number of changed files that could not be read."""
        self._read()

    def keys(self) -> Mapping[str, VerifyingKey]:
        """Return the current keys by their ids. A set that cannot be read is logged and changes nothing."""
        if self._refresh_seconds and self._now() >= self._looked_at + self._refresh_seconds:
            self._looked_at = self._now()
            if file_stamp(self._source) != self._stamp:
                self._refresh()
        return self._keys

    def _refresh(self) -> None:
        try:
            self._read()
        except UnusableKey as error:
            self.failures += 1
            _logger.error("keys not read, the earlier ones are used setting=tokenValidationKeysJwks reason=%s", error)
        else:
            _logger.info("keys read setting=tokenValidationKeysJwks keys=%s", ",".join(self._keys))

    def _read(self) -> None:
        stamp = file_stamp(self._source)
        self._keys = read_key_set(read_key(self._source))
        self._stamp = stamp
        if len(self._keys) > _MANY:
            _logger.warning(
                "many keys, each is tried for tokens that name none setting=tokenValidationKeysJwks keys=%d",
                len(self._keys),
            )
