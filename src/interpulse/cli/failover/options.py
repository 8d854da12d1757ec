"""Options of the commands, the confirmation, and the end with an exit code."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Collection, Coroutine
from typing import TYPE_CHECKING, Any

import click

from interpulse.terminal.option_groups import flag, option

if TYPE_CHECKING:
    from interpulse.failover.outcome import Outcome
    from interpulse.failover.pair_config import PairConfig

config_option = option("--config config_path", "TOML file of the pair.", metavar="FILE", required=True)
output_option = option("-o --output", "Form of the result.", click.Choice(["text", "json"]), "text")
yes_option = flag("--yes is_confirmed", "Do not ask for the name of the pair, which a terminal does otherwise.")
progress_option = option(
    "--progress progress_form",
    "Form of the line that each step prints. Text goes to standard error with -o json.",
    click.Choice(["text", "json"]),
    "text",
)


def read_config(path: str) -> PairConfig:
    """Read the file of the pair. Raise UsageError that lists every problem."""
    from interpulse.failover.pair_config import PairConfigError, load_pair_config

    try:
        return load_pair_config(path)
    except PairConfigError as error:
        raise click.UsageError(str(error)) from error


def check_names(config: PairConfig, site: str | None, accepted: Collection[str]) -> None:
    """Check a site and kinds of findings. Raise BadParameter that names the known ones."""
    from interpulse.failover.preflight.findings import KINDS

    if site is not None and site not in config.sites:
        raise click.BadParameter(f"{site} is none of the sites {', '.join(config.sites)}", param_hint="--to")
    for kind in accepted:
        if kind not in KINDS:
            raise click.BadParameter(f"{kind} is none of {', '.join(KINDS)}", param_hint="--accept")


def confirm(config: PairConfig, sentence: str, *, is_confirmed: bool) -> None:
    """Let the user type the name of the pair. Raise UsageError without a terminal, and Abort for another name."""
    if is_confirmed:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{sentence} Standard input is no terminal to confirm this on: give --yes")
    typed = click.prompt(f"{sentence}\nType the name of the pair to go on", err=True)
    if typed.strip() != config.name:
        click.echo(f"That is not {config.name}: nothing was changed.", err=True)
        raise click.Abort


def finish(run: Callable[[], Coroutine[Any, Any, int]], output: str = "text") -> None:
    """Run an operation and end the command with its outcome.

    A failure is one sentence on standard error, and with the output "json" an object too.
    """
    from interpulse.failover.outcome import OperationFailed, Outcome
    from interpulse.model.errors import PulsarError

    try:
        code = asyncio.run(run())
    except OperationFailed as failed:
        code = _failed(failed.outcome, str(failed), output)
    except PulsarError as error:
        code = _failed(Outcome.UNREACHABLE, str(error) or type(error).__name__, output)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}: the journal cannot be written or read; the same command goes on"
        code = _failed(Outcome.BROKEN_OFF, reason, output)
    except KeyboardInterrupt:
        hint = "the same command goes on; interpulse failover undo takes back"
        code = _failed(Outcome.BROKEN_OFF, hint, output)
    click.get_current_context().exit(code)


def _failed(outcome: Outcome, reason: str, output: str) -> int:
    title = outcome.name.replace("_", " ").capitalize()
    click.echo(f"{title}: {reason}", err=True)
    if output == "json":
        print_object({"outcome": outcome.name, "reason": reason})
    return outcome.value


def print_object(value: object) -> None:
    """Print one JSON object on one line."""
    click.echo(json.dumps(value, ensure_ascii=False))
