"""Name of the frame codec that this process uses."""

from __future__ import annotations

import os

import click

from interpulse.wire.codec import chosen_name


def codec_name() -> str:
    """Return ``native`` or ``python``. Raise UsageError if the environment demands a missing codec."""
    try:
        return chosen_name(os.environ)
    except (ImportError, ValueError) as error:
        raise click.UsageError(str(error)) from error
