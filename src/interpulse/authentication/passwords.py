"""Users and passwords from an htpasswd file.

Hashing takes milliseconds and runs in a thread, a few at a time. A correct password is cached as a keyed digest, until
the user's line changes.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

from passlib.context import CryptContext

from interpulse.authentication.authentication import Identity, PeerCertificate, Refused
from interpulse.authentication.signing_keys import UnusableKey, file_stamp, read_key

_logger = logging.getLogger(__name__)

_SCHEMES: Final = ("apr_md5_crypt", "des_crypt", "md5_crypt", "sha256_crypt", "sha512_crypt")
"""``$apr1$`` and the two-letter crypt are Pulsar's; the others are those of crypt(3)."""

_HASHED_AT_ONCE: Final = 2
_WAITING_MAX: Final = 200
"""More clients than this, each with another password, are an attack: they are refused without a check."""
_KNOWN_MAX: Final = 1000
_BYTES_MAX: Final = 4096


class UnusablePasswords(ValueError):
    """The users cannot be read. ``str()`` names the line and shows no hash."""


def read_passwords(content: bytes) -> dict[str, str]:
    """Return the hash of each user, without empty lines and comments. Raise UnusablePasswords."""
    users: dict[str, str] = {}
    for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        user, colon, stored = text.partition(":")
        if not user or not colon:
            raise UnusablePasswords(f"line {number} is not USER:HASH, as `htpasswd -nm USER` prints it")
        if CryptContext(_SCHEMES).identify(stored) is None:
            raise UnusablePasswords(
                f"line {number}: the hash of user {user} is none of apr1 (`htpasswd -m`) and crypt (`htpasswd -d`)"
            )
        users[user] = stored
    return users


class PasswordFile:
    """The users of ``basicAuthConf``, read again when the file changes."""

    def __init__(self, source: str) -> None:
        """Read users from ``file:...``, ``data:...``, a path or base64. Raise UnusableKey or UnusablePasswords."""
        self._source = source
        self._stamp = file_stamp(source)
        self._users = read_passwords(read_key(source))

    def users(self) -> Mapping[str, str]:
        """Return the current hash of each user. A file that cannot be read is logged and changes nothing."""
        stamp = file_stamp(self._source)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._users = read_passwords(read_key(self._source))
            except (UnusableKey, UnusablePasswords) as error:
                _logger.error("users cannot be read, the earlier ones are used setting=basicAuthConf error=%s", error)
            else:
                _logger.info("users read again setting=basicAuthConf users=%d", len(self._users))
        return self._users


class PasswordProvider:
    """Pulsar's AuthenticationProviderBasic: the user is the role, until their line in the file changes."""

    name = "AuthenticationProviderBasic"
    method = "basic"

    def __init__(self, users: Callable[[], Mapping[str, str]]) -> None:
        self._users = users
        self._context = CryptContext(_SCHEMES)
        self._digest_key = secrets.token_bytes(32)
        # digests of correct passwords, and the hashes that they matched
        self._known: OrderedDict[bytes, str] = OrderedDict()
        self._hashing = asyncio.Semaphore(_HASHED_AT_ONCE)
        self._waiting = 0

    async def authenticate(self, credentials: bytes, certificate: PeerCertificate | None) -> Identity:
        """Return the user as the role. ``credentials`` are ``user:password``."""
        user, password = _user_and_password(credentials)
        stored = self._users().get(user)
        digest = hmac.digest(self._digest_key, credentials, hashlib.sha256)
        if stored is None or self._known.get(digest) != stored:
            if not await self._is_correct(password, stored) or stored is None:
                raise Refused("INVALID_AUTH_DATA", f"user {user[:100]!r} is unknown, or the password is wrong")
            self._known[digest] = stored
            self._known.move_to_end(digest)
            if len(self._known) > _KNOWN_MAX:
                self._known.popitem(last=False)
        return Identity(user, revoked=lambda: self._users().get(user) != stored)

    async def _is_correct(self, password: str, stored: str | None) -> bool:
        """Return True if the password is correct. An unknown user takes as long as a wrong password."""
        if self._waiting >= _WAITING_MAX:
            raise Refused("BUSY", f"{_WAITING_MAX} passwords wait to be checked")
        self._waiting += 1
        try:
            async with self._hashing:
                return await asyncio.to_thread(self._verify, password, stored)
        finally:
            self._waiting -= 1

    def _verify(self, password: str, stored: str | None) -> bool:
        try:
            if stored is None:
                self._context.dummy_verify()
                return False
            return bool(self._context.verify(password, stored))
        except ValueError:  # no hash can be made of this password
            return False


def _user_and_password(credentials: bytes) -> tuple[str, str]:
    try:
        user, colon, password = credentials.decode().partition(":")
    except UnicodeError:
        raise Refused("INVALID_AUTH_DATA", "user and password are not UTF-8") from None
    if not user or not colon or len(credentials) > _BYTES_MAX:
        raise Refused("INVALID_AUTH_DATA", f"the credentials are not USER:PASSWORD of at most {_BYTES_MAX} bytes")
    return user, password
