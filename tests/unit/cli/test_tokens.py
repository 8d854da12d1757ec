"""``tokens``: keys and tokens as ``pulsar tokens`` makes and prints them."""

from __future__ import annotations

import base64
import json
import os
import re
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from interpulse.cli.main import main

SECRET = base64.b64encode(bytes(range(32))).decode()
FOR_ADMIN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9."


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["tokens", *arguments], input=stdin, catch_exceptions=False)


def printed(*arguments: str, stdin: str | None = None) -> str:
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(("algorithm", "length"), [("HS256", 32), ("HS384", 48), ("HS512", 64)])
def test_secret_key_when_made_then_is_as_long_as_its_signature_needs(
    algorithm: str, length: int, tmp_path: Path
) -> None:
    path = tmp_path / "secret.key"
    assert printed("create-secret-key", "-a", algorithm, "-o", str(path)) == ""
    assert len(path.read_bytes()) == length
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(base64.b64decode(printed("create-secret-key", "-b", "-a", algorithm))) == length
    token = printed("create", "-sk", str(path), "-s", "app").strip()
    assert f'{{"alg":"{algorithm}"}}' in printed("show", token)


def test_secret_key_when_its_file_was_readable_to_others_then_is_so_no_longer(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    path.touch(mode=0o644)
    path.chmod(0o644)
    printed("create-secret-key", "-o", str(path))
    assert path.stat().st_mode & 0o777 == 0o600


def test_secret_key_when_its_file_holds_one_then_it_is_replaced_by_force_only(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    printed("create-secret-key", "-o", str(path))
    kept = path.read_bytes()
    refused = run("create-secret-key", "-o", str(path))
    assert (refused.exit_code, path.read_bytes()) == (2, kept)
    assert f"{path} exists already" in refused.stderr
    assert printed("create-secret-key", "-o", str(path), "--force") == ""
    assert path.read_bytes() != kept
    assert path.stat().st_mode & 0o777 == 0o600


def test_secret_key_when_it_goes_to_a_pipe_then_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        printed("create-secret-key", "-o", str(path))
        assert len(reader.read()) == 32


@pytest.mark.parametrize("held", ["private.key", "public.key"])
def test_key_pair_when_one_of_its_files_holds_something_then_none_is_written(held: str, tmp_path: Path) -> None:
    (tmp_path / held).write_text("kept")
    files = (
        *("--output-private-key", str(tmp_path / "private.key")),
        *("--output-public-key", str(tmp_path / "public.key")),
    )
    refused = run("create-key-pair", "-a", "ES256", *files)
    assert refused.exit_code == 2
    assert f"{tmp_path / held} exists already" in refused.stderr
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [(held, "kept")]
    assert printed("create-key-pair", "-a", "ES256", *files, "--force") == ""
    assert (tmp_path / held).read_bytes() != b"kept"


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "ES512"])
def test_key_pair_when_made_then_the_one_verifies_what_the_other_signs(algorithm: str, tmp_path: Path) -> None:
    private, public = tmp_path / "private.key", tmp_path / "public.key"
    files = ("--output-private-key", str(private), "--output-public-key", str(public))
    assert printed("create-key-pair", "-a", algorithm, *files) == ""
    assert private.stat().st_mode & 0o777 == 0o600
    token = printed("create", "--private-key", private.as_uri(), "-a", algorithm, "--subject", "app").strip()
    assert printed("validate", token, "-pk", str(public), "-a", algorithm) == "{sub=app}\n"
    refused = run("create", "-pk", str(private), "-a", "ES384", "-s", "app")
    assert refused.exit_code == 2
    assert f"the key is not for ES384; -a takes one of: {algorithm}" in refused.stderr


def test_token_when_made_then_is_the_one_that_pulsar_makes() -> None:
    assert printed("create", "-sk", f"data:;base64,{SECRET}", "-s", "admin").startswith(FOR_ADMIN)


def test_token_when_shown_then_header_and_claims_are_printed_as_they_stand_there(tmp_path: Path) -> None:
    token = printed("create", "-sk", SECRET, "-s", "app", "-e", "3d", "-hs", "kid=7")
    path = tmp_path / "token"
    path.write_text(token)
    shown = printed("show", token.strip())
    assert shown == printed("show", "-i", stdin=token) == printed("show", "-f", str(path))
    found = re.fullmatch(r'\{"alg":"HS256","kid":"7"\}\n---\n\{"sub":"app","exp":(\d+)\}\n', shown)
    assert found
    assert 0 <= time.time() + 3 * 86_400 - int(found.group(1)) < 60


def test_key_set_when_made_of_keys_then_its_keys_verify_the_tokens_that_name_them(tmp_path: Path) -> None:
    from interpulse.authentication.tokens import KeySet, TokenProvider

    private, public, secret, made = (str(tmp_path / name) for name in ("private", "public", "secret", "keys.json"))
    printed("create-key-pair", "-a", "ES256", "--output-private-key", private, "--output-public-key", public)
    printed("create-secret-key", "-o", secret)
    assert printed("create-key-set", "-pk", f"a={public}", "-sk", f"b={secret}", "-o", made) == ""
    assert Path(made).stat().st_mode & 0o777 == 0o600, "it holds a secret key"
    verifier = TokenProvider(None, key_set=KeySet(made, 0), key_id_required=True)
    for key in (("-pk", private, "-a", "ES256", "--key-id", "a"), ("-sk", secret, "--key-id", "b")):
        assert verifier.verify(printed("create", "-s", "app", *key).strip()).role == "app"
    assert json.loads(printed("create-key-set", "-pk", f"a={public}"))["keys"][0]["kid"] == "a"
    refused = run("create-key-set", "-pk", f"a={public}", "-o", made)
    assert (refused.exit_code, f"{made} exists already" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("create", "-s", "app", "-sk", SECRET, "--key-id", ""), 2, "--key-id needs a value"),
        (("create", "-s", "a", "-sk", SECRET, "--key-id", "a", "-hs", "kid=a"), 2, "no kid among the --headers"),
        (("create-key-set",), 2, "Keys need to be passed by --secret-key or --public-key"),
        (("create-key-set", "-sk", SECRET.rstrip("=")), 2, "--secret-key needs key=value"),
        (("create-key-set", "-sk", f"={SECRET}"), 2, "each with an id of its own"),
        (("create-key-set", "-sk", f"a={SECRET}", "-sk", f"a={SECRET}"), 2, "each with an id of its own"),
        (("create-key-set", "-pk", f"a={SECRET}"), 2, "the key cannot be used: it is not a public key"),
        (("create", "-s", "app"), 2, "Either --secret-key or --private-key"),
        (("create", "-s", "app", "-sk", SECRET, "-pk", SECRET), 2, "Either --secret-key or --private-key"),
        (("create", "-s", "app", "-sk", SECRET, "-e", "0"), 2, "--expiry-time needs to be above 0"),
        (("create", "-s", "app", "-sk", SECRET, "-hs", "kid"), 2, "--headers needs key=value, not 'kid'"),
        (("create", "-s", "app", "-sk", "file:///not/there"), 2, "/not/there cannot be read"),
        (("create", "-s", "app", "-pk", SECRET), 2, "the key cannot be used: it is not a private key"),
        (("validate", "x"), 2, "Either --secret-key or --public-key"),
        (("validate", "-sk", SECRET), 2, "Token needs to be either passed as an argument"),
        (("validate", "x", "-i", "-sk", SECRET), 2, "Token needs to be either passed as an argument"),
        (("validate", "x", "-sk", SECRET), 1, "the token is not valid"),
        (("validate", f"{FOR_ADMIN}AAAA", "-sk", SECRET), 1, "the token is not valid: InvalidSignatureError"),
        (("validate", "x", "-pk", SECRET), 2, "the key cannot be used: it is not a public key"),
        (("validate", "-f", "/not/there", "-sk", SECRET), 2, "/not/there cannot be read: No such file"),
        (("show", "x"), 1, "this is not a token"),
        (("create-secret-key", "-o", "/not/there/x"), 1, "/not/there/x cannot be written: No such file"),
    ],
)
def test_command_when_it_cannot_be_done_then_says_why(arguments: tuple[str, ...], code: int, said: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, said in result.stderr) == (code, True), result.stderr
    assert SECRET not in result.stderr


def test_token_when_expired_then_is_not_valid(tmp_path: Path) -> None:
    from interpulse.authentication.tokens import create_token

    token = create_token(bytes(range(32)), "app", signature="HS256", expires_in_seconds=-60)
    refused = run("validate", token, "-sk", SECRET)
    assert refused.exit_code == 1
    assert "the token has expired" in refused.stderr
    assert "---" in printed("show", token)
