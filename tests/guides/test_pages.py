"""Every code block of README and guides, without running it: commands exist, options too, programs compile."""

from __future__ import annotations

import ast
import itertools
import json
import shlex
import tomllib
from collections.abc import Iterator

import click
import pytest
import yaml

from interpulse.cli.admin.admin import admin
from interpulse.cli.main import main
from tests.guides.pages import Block, blocks_of, guides

PROGRAMS = {"interpulse": main, "interpulse-admin": admin, "east": admin, "west": admin}
LANGUAGES = {"sh", "text", "python", "sql", "json", "toml", "yaml", "properties"}
SEPARATORS = {"|", "||", "&&", "&", "{", "}", ">", ">>", "<"}

BLOCKS = [block for page in guides() for block in blocks_of(page)]


def commands_of(text: str) -> Iterator[list[str]]:
    """The simple commands of a shell script, without assignments in front and redirections behind."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        for separator, words in itertools.groupby(lexer, SEPARATORS.__contains__):
            command = list(itertools.dropwhile(lambda word: "=" in word, words))
            if not separator and command:
                yield command


def check(command: click.Command, name: str, arguments: list[str], parent: click.Context | None = None) -> None:
    """Parse a command line to its end without running it; raises click.UsageError."""
    context = command.make_context(name, arguments, parent=parent)
    if isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        if not rest and command.invoke_without_command:
            return
        found_name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        check(found, found_name or "", rest, context)


def test_blocks_when_read_then_say_their_language() -> None:
    assert not [block.place for block in BLOCKS if block.language not in LANGUAGES]


@pytest.mark.parametrize("block", [each for each in BLOCKS if each.language == "sh"], ids=lambda block: block.place)
def test_commands_when_parsed_then_exist_with_their_options(block: Block) -> None:
    for command in commands_of(block.text):
        program, *arguments = command
        if program in PROGRAMS and not {"--version", "()", "$@"} & set(arguments):
            check(PROGRAMS[program], program, arguments)


@pytest.mark.parametrize("arguments", [["topics", "lst", "a/b"], ["topics", "list", "a/b", "--nonsense"]])
def test_check_when_a_command_is_wrong_then_objects(arguments: list[str]) -> None:
    with pytest.raises(click.UsageError):
        check(admin, "interpulse-admin", arguments)


def test_programs_and_files_when_parsed_then_are_well_formed() -> None:
    for block in BLOCKS:
        if block.language == "python":
            compile(block.text, block.place, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "yaml":
            assert yaml.safe_load(block.text)
