"""Write docs/reference/cli.md from the commands themselves; a test fails when the page is stale."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from interpulse.cli.main import main as interpulse

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"

INTRODUCTION = """\
# Command line

<!-- Written by tools/generate_cli_reference.py; change the commands, not this page. -->

`interpulse` is everything; `interpulse-admin` is `interpulse admin` by itself, with the tree, the options and the
output of `pulsar-admin`. Both work against our own broker and against Apache Pulsar.

**Where settings come from**, strongest first: the flag; an environment variable named like the key (`webServiceUrl`,
`brokerServiceUrl`, `authPlugin`, `authParams`, `tlsTrustCertsFilePath`, `tlsAllowInsecureConnection`,
`tlsEnableHostnameVerification`); the file that `PULSAR_CLIENT_CONF` names, in the form of Pulsar's `client.conf`; the
default. Authentication plug-ins are named as in Pulsar: `AuthenticationToken` with `token:...`, `file:...` or
`env:NAME`, and `AuthenticationBasic` with `{"userId":"...","password":"..."}`. A URL may name several hosts
(`http://a:8080,b:8080`): the next one is asked when one cannot be reached.

**Output.** Lists come one item per line, pairs as `key    value`, objects as indented JSON, a policy that is not set as
`null`. Errors are one line on standard error: the broker's reason, then the HTTP status in parentheses.

**Other forms.** Every command of the administration takes `-o json`, `-o yaml` or `-o table` and prints the same values
in that form. The option may also stand in front: `interpulse-admin -o json topics list public/default`.

**Completion** of commands, options and choices. For `interpulse` the variable is `_INTERPULSE_COMPLETE`.

| shell | what to add | where |
| --- | --- | --- |
| bash | `eval "$(_INTERPULSE_ADMIN_COMPLETE=bash_source interpulse-admin)"` | `~/.bashrc` |
| zsh | `eval "$(_INTERPULSE_ADMIN_COMPLETE=zsh_source interpulse-admin)"` | `~/.zshrc` |
| fish | `_INTERPULSE_ADMIN_COMPLETE=fish_source interpulse-admin \\| source` | `~/.config/fish/config.fish` |

**Exit codes.** 0 done, 1 failed, 2 wrong usage, 3 differences found, 4 not allowed, 5 not reachable.

**Values.** Topics are `topic`, `tenant/namespace/topic` or `persistent://tenant/namespace/topic`; namespaces are
`tenant/namespace`. Sizes take K, M, G, T (`10M`), times take s, m, h, d, w, y (`3h`; seconds without a unit), and -1
means without limit. Message ids are `latest`, `earliest` or `ledgerId:entryId`.
"""


def page() -> str:
    """The whole page."""
    context = click.Context(interpulse, info_name="interpulse")
    return INTRODUCTION + "".join(_sections(context))


def _sections(context: click.Context) -> Iterator[str]:
    group = context.command
    assert isinstance(group, click.Group)
    for name in sorted(group.list_commands(context)):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        yield _section(inner)
        if isinstance(command, click.Group):
            yield from _sections(inner)


def _section(context: click.Context) -> str:
    command = context.command
    depth = min(context.command_path.count(" ") + 1, 4)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    lines = ["", f"{'#' * depth} {context.command_path}", "", f"`{usage}`", "", *_help(command)]
    options = [param for param in command.params if isinstance(param, click.Option)]
    records = [record for record in (option.get_help_record(context) for option in options) if record]
    if records:
        lines += ["", "| option | meaning |", "| --- | --- |"]
        lines += [f"| `{_cell(option)}` | {_cell(text)} |" for option, text in records]
    return "\n".join(lines) + "\n"


def _help(command: click.Command) -> list[str]:
    return inspect.cleandoc(command.help or "").splitlines()


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE} written\n")
