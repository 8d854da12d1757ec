"""Which frame codec this process uses, for people."""

from __future__ import annotations

import os

import click

from interpulse.wire.codec import chosen_name

__all__ = ["codec_name"]


def codec_name() -> str:
    """``native`` or ``python``. Raises UsageError if the environment demands one that is not there."""
    try:
        return chosen_name(os.environ)
    except (ImportError, ValueError) as error:
        raise click.UsageError(str(error)) from error
