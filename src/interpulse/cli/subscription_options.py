"""Options of commands that subscribe, of which pulsar-client and pulsar-perf have the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from interpulse.cli.support.option_groups import option_group

__all__ = ["SUBSCRIPTION_TYPES", "chunk_options", "replicated_option", "start_option", "type_option"]

SUBSCRIPTION_TYPES: Final = {
    "Exclusive": "exclusive",
    "Shared": "shared",
    "Failover": "failover",
    "Key_Shared": "key-shared",
}
"""As the client calls them."""


def type_option(flag: str) -> Callable[[Any], Any]:
    """``subscription_type``, one of `SUBSCRIPTION_TYPES`; ``flag`` is its short form."""
    return click.option(
        flag,
        "--subscription-type",
        type=click.Choice(list(SUBSCRIPTION_TYPES), case_sensitive=False),
        default="Exclusive",
        show_default=True,
        help="Type of the subscription.",
    )


def start_option(flag: str) -> Callable[[Any], Any]:
    """``position``, Latest or Earliest."""
    return click.option(
        flag,
        "--subscription-position",
        "position",
        type=click.Choice(["Latest", "Earliest"], case_sensitive=False),
        default="Latest",
        show_default=True,
        help="Start of a new subscription.",
    )


replicated_option = click.option(
    "-rs", "--replicated", is_flag=True, help="Have the position replicated to other clusters."
)

chunk_options = option_group(
    click.option(
        "-mc",
        "--max_chunked_msg",
        "chunked_max",
        type=click.IntRange(min=0),
        default=0,
        help="Messages in chunks that may be incomplete at a time; 0 = the default, 10.",
    ),
    click.option(
        "-ac",
        "--auto_ack_chunk_q_full",
        "oldest_chunks_acknowledged",
        is_flag=True,
        help="Acknowledge the chunks of the oldest message when there are more of them.",
    ),
)
