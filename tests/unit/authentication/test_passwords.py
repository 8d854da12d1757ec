"""Users and passwords: files of htpasswd, what is right, what is remembered, and what was taken back."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from passlib.context import CryptContext

from interpulse.authentication.authentication import Authentication, BadCredentials, Identity
from interpulse.authentication.passwords import PasswordFile, PasswordProvider, UnusablePasswords, read_passwords

APR1 = "$apr1$gR0xQvHy$D.oP.sSg/OkOTs2XA.Jvv0"
CRYPT = "NgVAFHmH9jSmg"
"""Of ``pw``, as `htpasswd -m` and `htpasswd -d` print them."""


def provider(users: dict[str, str] | None = None) -> PasswordProvider:
    known = {"bob": APR1, "carol": CRYPT} if users is None else users
    return PasswordProvider(lambda: known)


def test_file_when_read_then_has_the_hash_of_each_user() -> None:
    assert read_passwords(f"# users\n\nbob:{APR1}\r\ncarol:{CRYPT}\n".encode()) == {"bob": APR1, "carol": CRYPT}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"bob", "line 1 is not USER:HASH"),
        (b":x", "line 1 is not USER:HASH"),
        (b"\nbob:plain-text", "line 2: the hash of user bob is none of apr1"),
        (b"bob:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "none of apr1"),
        (b"bob:", "none of apr1"),
    ],
)
def test_file_when_it_is_none_of_htpasswd_then_is_refused_by_its_line(content: bytes, why: str) -> None:
    with pytest.raises(UnusablePasswords, match=why) as refusal:
        read_passwords(content)
    assert "plain-text" not in str(refusal.value)


@pytest.mark.parametrize("scheme", ["apr_md5_crypt", "des_crypt", "md5_crypt"])
async def test_password_when_right_then_its_user_is_the_role(scheme: str) -> None:
    asked = Authentication([provider({"bob": CryptContext([scheme]).hash("pw")})])
    assert await asked.authenticate("basic", b"bob:pw") == Identity("bob")
    header = "Basic " + base64.b64encode(b"bob:pw").decode()
    assert await asked.authenticate_http({"Authorization": header}) == Identity("bob")


@pytest.mark.parametrize(
    "credentials",
    [b"bob:", b"bob:PW", b"Bob:pw", b"nobody:pw", b"bob", b":pw", b"", b"\xff:pw", b"bob:p\0w", b"bob:" + b"x" * 5000],
)
async def test_password_when_wrong_then_is_refused_in_the_same_words(credentials: bytes) -> None:
    asked = Authentication([provider()])
    with pytest.raises(BadCredentials, match=r"^Failed to authenticate$"):
        await asked.authenticate("basic", credentials)
    assert asked.meter.failures == {("AuthenticationProviderBasic", "basic", "INVALID_AUTH_DATA"): 1}


@pytest.mark.parametrize("header", ["Basic", "Basic bob:pw", "Basic ====", "Basic Ym9i"])
async def test_call_when_its_header_is_no_user_and_password_then_is_refused(header: str) -> None:
    with pytest.raises(BadCredentials, match="Authentication required"):
        await Authentication([provider()]).authenticate_http({"Authorization": header})


async def test_password_when_right_once_then_is_not_hashed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, hashed = provider(), list[str]()

    def verify(password: str, stored: str) -> bool:
        hashed.append(password)
        return password == "pw"

    monkeypatch.setattr(asked, "_verify", verify)
    for _ in range(3):
        await asked.authenticate(b"bob:pw", None)
    assert hashed == ["pw"]


async def test_user_when_its_line_changes_then_earlier_identity_is_revoked(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(f"bob:{APR1}\n")
    users = PasswordFile(path.as_uri())
    asked = PasswordProvider(users.users)
    identity = await asked.authenticate(b"bob:pw", None)
    assert not identity.has_ended(0.0)

    replaced = tmp_path / "new"
    replaced.write_text(f"carol:{CRYPT}\n")
    os.replace(replaced, path)
    assert identity.has_ended(0.0)
    assert (await asked.authenticate(b"carol:pw", None)).role == "carol"


def test_file_when_it_is_damaged_later_then_the_earlier_users_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "users"
    path.write_text(f"bob:{APR1}\n")
    users = PasswordFile(str(path))
    path.write_text("bob:\n# damaged")
    assert users.users() == {"bob": APR1}
    assert "the earlier ones are used setting=basicAuthConf" in caplog.text
    path.write_text(f"carol:{CRYPT}\n")
    assert users.users() == {"carol": CRYPT}
