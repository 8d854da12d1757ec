"""Command ``interpulse context``: clusters under names of the user."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click

from interpulse.cli.admin.admin import connection_options
from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.connection.contexts import (
    CONTEXT_KEYS,
    CONTEXT_VARIABLE,
    Contexts,
    chosen_context,
    contexts_path,
    holds_secret,
)
from interpulse.cli.support.connection.settings import ConnectionSettings
from interpulse.terminal.option_groups import flag, option
from interpulse.terminal.output import format_option, print_pairs, print_value

_HIDDEN = "(not shown)"


@click.group(cls=CommandGroup)
def context() -> None:
    """Store addresses and credentials of clusters under names.

    Commands that connect to a cluster use the context named by --context, else by the environment variable
    INTERPULSE_CONTEXT, else the current one. Flags and environment variables of single settings take precedence.
    """


@context.command("create")
@click.argument("name")
@option("--url brokerServiceUrl", "Service URL, such as pulsar://localhost:6650.")
@option("--admin-url webServiceUrl", "Web service URL, such as http://localhost:8080.")
@connection_options
@option("--tls-cert-path tlsCertificateFilePath", "File with the certificate to show (PEM).")
@option("--tls-key-path tlsKeyFilePath", "File with the key of that certificate (PEM).")
@flag("--replace", "Put it in the place of the context of that name.")
@flag("--use used", "Use it from now on.")
def create(name: str, replace: bool, used: bool, **flags: Any) -> None:
    """Create a context. Its credentials are stored in a file that only you can read."""
    if flags.pop("context") is not None:
        raise click.UsageError("--context has no meaning here: NAME is the context")
    chosen = {key: flags[key] for key in CONTEXT_KEYS if flags.get(key) is not None}
    settings = {key: str(value).lower() if isinstance(value, bool) else value for key, value in chosen.items()}
    if not {"brokerServiceUrl", "webServiceUrl"} & set(settings):
        raise click.UsageError("A context has an address: give --url, --admin-url or both")
    path = contexts_path()
    contexts = Contexts.load(path)
    if name in contexts.settings and not replace:
        raise click.UsageError(f"There is a context {name!r} already: --replace replaces it")
    _check(settings)
    contexts = contexts.with_context(name, settings)
    (contexts.using(name) if used else contexts).save(path)


def _check(settings: Mapping[str, str]) -> None:
    """Raise click.UsageError for settings that no command could use."""
    from interpulse.client.config import ClientConfig

    resolved = ConnectionSettings.resolve({key: settings.get(key) for key in CONTEXT_KEYS}, {})
    try:
        for url in (settings.get("brokerServiceUrl"), settings.get("webServiceUrl")):
            if url is not None:
                ClientConfig(url, credentials=resolved.credentials())
    except ValueError as error:
        raise click.UsageError(str(error)) from error


@context.command("use")
@click.argument("name", required=False)
@flag("--none unused", "Use no context from now on.")
def use(name: str | None, unused: bool) -> None:
    """Use a context from now on, unless another is named."""
    if (name is None) != unused:
        raise click.UsageError("Name a context, or give --none")
    path = contexts_path()
    Contexts.load(path).using(name).save(path)


@context.command("list")
@format_option()
def list_contexts() -> None:
    """List the contexts. The current one has a star."""
    contexts = Contexts.load(contexts_path())
    chosen = os.environ.get(CONTEXT_VARIABLE) or contexts.current
    rows = [
        {
            "name": name,
            "used": name == chosen,
            "brokerServiceUrl": settings.get("brokerServiceUrl"),
            "webServiceUrl": settings.get("webServiceUrl"),
        }
        for name, settings in sorted(contexts.settings.items())
    ]
    print_value(rows, "\n".join(f"{'*' if row['used'] else ' '} {row['name']}" for row in rows))


@context.command("show")
@click.argument("name", required=False)
@format_option()
def show(name: str | None) -> None:
    """Print the settings of a context, by default of the current one. Credentials are not shown."""
    chosen, settings = chosen_context(name, os.environ)
    if chosen is None:
        raise click.UsageError("No context is in use: name one, or use one with interpulse context use")
    secret = {"authParams": _HIDDEN} if holds_secret(settings) else {}
    print_pairs({"name": chosen, **settings, **secret})


@context.command("delete")
@click.argument("name")
def delete(name: str) -> None:
    """Delete a context."""
    path = contexts_path()
    Contexts.load(path).without(name).save(path)
