"""Write docs/reference/cli.md from the commands themselves; a test fails when the page is stale."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from interpulse.cli.admin.admin import admin
from interpulse.cli.main import main as interpulse
from interpulse.cli.support.pulsar_admin_tree import ABSENT_GROUPS, TREE, reason_for

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
PAGE = REFERENCE / "cli.md"
TREE_PAGE = REFERENCE / "pulsar-admin.md"

INTRODUCTION = """\
# Command line

<!-- Written by tools/generate_cli_reference.py; change the commands, not this page. -->

`interpulse` has all commands. `interpulse-admin` is the same as `interpulse admin`, with the commands, the options
and the output of `pulsar-admin`. Both work with Interpulse and with Apache Pulsar.

**Settings** come from these sources; earlier ones override later ones:

1. the flag;
2. an environment variable with the name of the key (`webServiceUrl`, `brokerServiceUrl`, `authPlugin`, `authParams`,
   `tlsTrustCertsFilePath`, `tlsAllowInsecureConnection`, `tlsEnableHostnameVerification`);
3. the current context, which `interpulse context` stores; `--context` or the variable `INTERPULSE_CONTEXT` chooses
   one for a single command;
4. the file in `PULSAR_CLIENT_CONF`, in the format of Pulsar's `client.conf`, without its address and credentials if
   there is a current context;
5. the default.

Authentication plug-ins have Pulsar's names: `AuthenticationToken` with `token:...`, `file:...` or `env:NAME`,
`AuthenticationBasic` with `{"userId":"...","password":"..."}`, `file:...` or `env:NAME`, `AuthenticationTls`, and
`AuthenticationOAuth2` with `{"issuerUrl":"https://...","privateKey":"file:///...","audience":"..."}`. A URL may name
several hosts (`http://a:8080,b:8080`); the next host is used if one cannot be reached.

**Output.** Lists have one item per line, pairs are `key    value`, objects are indented JSON, and a policy that is
not set is `null`. Errors are one line on standard error: the broker's reason, then the HTTP status in parentheses.

**Other forms.** Every command of the administration takes `-o json`, `-o yaml` or `-o table` and prints the same values
in that form; `-o name` prints only names, one per line. `-o wide` is a table with more columns for `topics list`,
`topics list-partitioned-topics`, `topics subscriptions`, `namespaces topics`, `brokers list` and `brokers namespaces`:
the values come from one or two more requests for all rows. Other lists of names refuse it; objects are
printed as with `-o table`. You can also put the option first:
`interpulse-admin -o json topics list public/default`.

**Completion** covers commands, options and choices, and also tenants, namespaces and topics if the cluster answers
quickly. For `interpulse` the variable is `_INTERPULSE_COMPLETE`.

| shell | line to add | file |
| --- | --- | --- |
| bash | `eval "$(_INTERPULSE_ADMIN_COMPLETE=bash_source interpulse-admin)"` | `~/.bashrc` |
| zsh | `eval "$(_INTERPULSE_ADMIN_COMPLETE=zsh_source interpulse-admin)"` | `~/.zshrc` |
| fish | `_INTERPULSE_ADMIN_COMPLETE=fish_source interpulse-admin \\| source` | `~/.config/fish/config.fish` |

**Exit codes.**

| code | meaning |
| --- | --- |
| 0 | done |
| 1 | failed, with the reason on standard error; or a comparison found differences |
| 2 | wrong usage: an option, an argument, a file that they name, `client.conf`; or a failed read or start |
| 3 | conflicts that only an operator can resolve, in a plan of `namespaces set-clusters` |
| 4 | not allowed, or no credentials |
| 5 | not reachable, or no answer in time |
| 6 | not offered: Apache Pulsar has the command, Interpulse does not; see [the list of commands](pulsar-admin.md) |

**Values.** Topics are `topic`, `tenant/namespace/topic` or `persistent://tenant/namespace/topic`; namespaces are
`tenant/namespace`. Sizes take K, M, G, T (`10M`), times take s, m, h, d, w, y (`3h`; seconds without a unit), and -1
means without limit. Message ids are `latest`, `earliest` or `ledgerId:entryId`.
"""


def page() -> str:
    """The whole page."""
    context = click.Context(interpulse, info_name="interpulse", **interpulse.context_settings)
    return INTRODUCTION + "".join(_sections(context))


TREE_INTRODUCTION = """\
# The commands of pulsar-admin

<!-- Written by tools/generate_cli_reference.py from cli/support/pulsar_admin_tree.py. -->

This page lists every command of Apache Pulsar's `pulsar-admin`, and whether `interpulse-admin` has it. The names are
those of release 4.0.6 and the additional ones of 5.0; `properties` is from releases before 4.0. A command that is not
offered prints the reason and ends with exit code 6. [Command line](cli.md) describes the offered commands and
Interpulse's own.
"""


def tree_page() -> str:
    """The page of pulsar-admin's commands."""
    context = click.Context(admin, info_name="interpulse-admin", **admin.context_settings)
    return TREE_INTRODUCTION + "".join(_group(context, name) for name in sorted({*TREE, *ABSENT_GROUPS}))


def _group(context: click.Context, name: str) -> str:
    group = None if name in ABSENT_GROUPS else admin.get_command(context, name)
    offered = group.commands.keys() if isinstance(group, click.Group) else ()
    lines = ["", f"## {name}", ""]
    if group is None:
        lines += [f"Not offered: {reason_for(name)}.", ""]
    present, absent = sorted(TREE.get(name, frozenset()) & set(offered)), TREE.get(name, frozenset()) - set(offered)
    if present:
        lines += [f"Offered: {_names(present)}.", ""]
    reasons: dict[str, list[str]] = {}
    for command in sorted(absent):
        reasons.setdefault("" if group is None else reason_for(name, command), []).append(command)
    for reason, commands in sorted(reasons.items()):
        words = "Commands" if group is None else "Not offered"
        lines += [f"{words}: {_names(commands)}{f' ({reason})' if reason else ''}.", ""]
    if ours := sorted(set(offered) - TREE.get(name, frozenset())):
        lines += [f"Only in Interpulse: {_names(ours)}.", ""]
    return "\n".join(lines[:-1]) + "\n"


def _names(commands: Iterable[str]) -> str:
    return ", ".join(f"`{command}`" for command in commands)


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
    for path, text in ((PAGE, page()), (TREE_PAGE, tree_page())):
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path} written\n")
