"""Command ``tokens``: keys and tokens for authentication, with the options and output of ``pulsar tokens``."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, TypeVar

import click

from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.params import TIME
from interpulse.cli.support.running import UNUSABLE, CommandFailed
from interpulse.terminal.option_groups import flag, option, option_group

if TYPE_CHECKING:
    from interpulse.authentication.signing_keys import PrivateKey, PublicKey

Key = TypeVar("Key")

_SECRET = ("HS256", "HS384", "HS512")
_PAIR = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
_SECRET_BYTES = dict(zip(_SECRET, (32, 48, 64), strict=True))
_FORMS = "file:..., data:..., the path of a file, or base64."

_token_options = option_group(
    click.argument("token", required=False),
    flag("-i --stdin from_stdin", "Read the token from standard input."),
    option("-f --token-file", "Read the token from a file.", click.Path()),
)
_force = flag("--force", "Replace a file that holds something.")
_secret_key = option("-sk --secret-key", f"The secret key: {_FORMS}")


def _algorithm(names: Sequence[str], about: str | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    choice = click.Choice(names)
    return option("-a --signature-algorithm algorithm", about, choice, names[0])


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
def tokens() -> None:
    """Create and check keys and tokens for a broker with authentication."""


@tokens.command("create-secret-key")
@_algorithm(_SECRET)
@option("-o --output", "Write the key to a file instead of standard output.", click.Path())
@flag("-b --base64 encoded", "Write the key as base64.")
@_force
def create_secret_key(algorithm: str, output: str | None, encoded: bool, force: bool) -> None:
    """Create a key that signs and verifies tokens. Its owner can assume every role."""
    key = os.urandom(_SECRET_BYTES[algorithm])
    if output is None:
        click.echo(base64.b64encode(key) if encoded else key, nl=encoded)
    else:
        _write(output, base64.b64encode(key) if encoded else key, force=force)


@tokens.command("create-key-pair")
@_algorithm(_PAIR)
@option("--output-private-key", "File for the key that signs.", click.Path(), required=True)
@option("--output-public-key", "File for the key that verifies.", click.Path(), required=True)
@_force
def create_key_pair(algorithm: str, output_private_key: str, output_public_key: str, force: bool) -> None:
    """Create a private key that signs tokens, and the public key with which a broker verifies them."""
    from interpulse.authentication.signing_keys import new_key_pair

    if not force:
        _refuse_to_replace(output_private_key, output_public_key)
    private, public = new_key_pair(algorithm)
    _write(output_private_key, private, force=True)
    _write(output_public_key, public, force=True, secret=False)


@tokens.command("create")
@option("-s --subject", "Role of the token.", required=True)
@option("-e --expiry-time expires_in", "Lifetime of the token: 1h, 3d, 10y; unlimited by default.", TIME)
@_algorithm(_PAIR, "Algorithm of a private key; a secret key determines its own.")
@_secret_key
@option("-pk --private-key", f"The private key: {_FORMS}")
@option("-hs --headers", "Additional header of the token.", multiple=True, metavar="KEY=VALUE")
@option("--key-id", "Id of the key in the broker's tokenValidationKeysJwks: the header kid.")
def create(subject: str, expires_in: int | None, algorithm: str, headers: tuple[str, ...], **flags: str | None) -> None:
    """Create a token."""
    from interpulse.authentication.signing_keys import private_key, secret_key, signatures
    from interpulse.authentication.tokens import create_token

    secret, private, key_id = flags["secret_key"], flags["private_key"], flags["key_id"]
    if (secret is None) == (private is None):
        raise click.UsageError("Either --secret-key or --private-key needs to be passed")
    key: bytes | PrivateKey = (
        _read_key(secret, secret_key) if secret is not None else _read_key(private or "", private_key)
    )
    if expires_in is not None and expires_in <= 0:
        raise click.UsageError("--expiry-time needs to be above 0")
    signature = signatures(key)[-1] if isinstance(key, bytes) else _fitting(algorithm, key.public_key())
    more = dict(_pair(header, "--headers") for header in headers)
    if key_id is not None:
        if not key_id or "kid" in more:
            raise click.UsageError("--key-id needs a value, and no kid among the --headers")
        more["kid"] = key_id
    click.echo(create_token(key, subject, signature=signature, expires_in_seconds=expires_in, headers=more))


@tokens.command("create-key-set")
@option("-sk --secret-key secrets", f"A secret key: {_FORMS}", multiple=True, metavar="ID=KEY")
@option("-pk --public-key publics", f"A public key: {_FORMS}", multiple=True, metavar="ID=KEY")
@option("-o --output", "Write the set to a file instead of standard output.", click.Path())
@_force
def create_key_set(secrets: tuple[str, ...], publics: tuple[str, ...], output: str | None, force: bool) -> None:
    """Join keys into a JSON Web Key Set, for a broker's setting tokenValidationKeysJwks.

    Tokens refer to their key by its id; see --key-id of tokens create.
    """
    from interpulse.authentication.signing_keys import public_key, secret_key
    from interpulse.authentication.tokens import json_key

    secret_pairs = [_pair(secret, "--secret-key") for secret in secrets]
    public_pairs = [_pair(public, "--public-key") for public in publics]
    ids = [key_id for key_id, _ in (*secret_pairs, *public_pairs)]
    if not all(ids) or not 0 < len(set(ids)) == len(ids):
        raise click.UsageError("Keys need to be passed by --secret-key or --public-key, each with an id of its own")
    keys = [json_key(_read_key(key, secret_key), key_id) for key_id, key in secret_pairs]
    keys += [json_key(_read_key(key, public_key), key_id) for key_id, key in public_pairs]
    written = json.dumps({"keys": keys}, indent=2) + "\n"
    if output is None:
        click.echo(written, nl=False)
    else:
        _write(output, written.encode(), force=force, secret=bool(secrets))


@tokens.command("show")
@_token_options
def show(**flags: Any) -> None:
    """Print header and claims of a token without verifying them."""
    from interpulse.authentication.tokens import BadToken, show_token

    try:
        header, claims = show_token(_token(**flags))
    except BadToken as error:
        raise CommandFailed(str(error)) from None
    click.echo(f"{_compact(header)}\n---\n{_compact(claims)}")


@tokens.command("validate")
@_token_options
@_secret_key
@option("-pk --public-key", f"The public key: {_FORMS}")
@_algorithm(_PAIR, "For a public key.")
def validate(secret_key: str | None, public_key: str | None, algorithm: str, **flags: Any) -> None:
    """Verify signature and lifetime of a token, and print its claims."""
    from interpulse.authentication import signing_keys
    from interpulse.authentication.tokens import BadToken, TokenProvider, show_token

    if (secret_key is None) == (public_key is None):
        raise click.UsageError("Either --secret-key or --public-key needs to be passed")
    text = _token(**flags)
    key: bytes | PublicKey
    if secret_key is not None:
        key = _read_key(secret_key, signing_keys.secret_key)
    else:
        key = _read_key(public_key or "", signing_keys.public_key)
        _fitting(algorithm, key)
    try:
        TokenProvider(key).verify(text)
    except BadToken as error:
        raise CommandFailed(str(error)) from None
    claims = show_token(text)[1]
    click.echo("{" + ", ".join(f"{name}={value}" for name, value in claims.items()) + "}")


def _read_key(source: str, parse: Callable[[bytes], Key]) -> Key:
    from interpulse.authentication.signing_keys import UnusableKey, read_key

    try:
        return parse(read_key(source))
    except UnusableKey as error:
        raise CommandFailed(f"the key cannot be used: {error}", UNUSABLE) from None


def _fitting(algorithm: str, key: PublicKey) -> str:
    from interpulse.authentication.signing_keys import signatures

    if algorithm not in signatures(key):
        raise CommandFailed(f"the key is not for {algorithm}; -a takes one of: {', '.join(signatures(key))}", UNUSABLE)
    return algorithm


def _token(token: str | None, from_stdin: bool, token_file: str | None) -> str:
    if sum((token is not None, from_stdin, token_file is not None)) != 1:
        raise click.UsageError("Token needs to be either passed as an argument, or through `--stdin` or `--token-file`")
    if from_stdin:
        return sys.stdin.read().strip()
    if token_file is not None:
        try:
            return Path(token_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CommandFailed(
                f"{token_file} cannot be read: {getattr(error, 'strerror', None) or error}", UNUSABLE
            ) from None
    return str(token)


def _pair(text: str, option: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        raise click.UsageError(f"{option} needs key=value, not {text!r}")
    return key, value


def _compact(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def _refuse_to_replace(*paths: str) -> None:
    """Refuse if one of the files has content, before any is written. Devices and pipes have none."""
    for path in paths:
        if os.path.isfile(path) and os.path.getsize(path):
            raise CommandFailed(
                f"{path} exists already, and no token would be valid without its key: "
                "name another file, or replace it with --force",
                UNUSABLE,
            )


def _write(path: str, key: bytes, *, force: bool, secret: bool = True) -> None:
    """Write a key; a key that signs is readable by its owner only."""
    if not force:
        _refuse_to_replace(path)
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if secret else 0o644), "wb") as file:
            if secret and S_ISREG(os.fstat(file.fileno()).st_mode):
                os.fchmod(file.fileno(), 0o600)  # the file may have been there, and readable
            file.write(key)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be written: {error.strerror}") from None
