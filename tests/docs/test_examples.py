"""Every example in the docs is true: Python runs, `headway` lines parse, `make` targets and linked pages exist."""

import re
import shlex
from pathlib import Path

import pytest
import typer
from pytest_examples import CodeExample, EvalExample, find_examples
from typer.core import TyperGroup

from headway.app.cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")])
SHELL = re.compile(r"^```(?:bash|sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")


def shell_lines(program: str) -> list[tuple[Path, list[str]]]:
    """The words of each line in the docs' shell blocks that starts ``program``, continuation lines joined."""
    return [
        (page.relative_to(ROOT), shlex.split(line.strip().removeprefix("$ "), comments=True))
        for page in PAGES
        for block in SHELL.findall(page.read_text())
        for line in block.replace("\\\n", " ").splitlines()
        if line.strip().removeprefix("$ ").startswith(f"{program} ")
    ]


@pytest.mark.parametrize(("page", "words"), shell_lines("headway"), ids=str)
def test_headway_lines_parse(page: Path, words: list[str]) -> None:
    command, rest = typer.main.get_command(app), [word for word in words[1:] if word != "&"]
    while isinstance(command, TyperGroup):
        assert rest, f"{page}: a command group alone: {words}"
        assert rest[0] in command.commands, f"{page}: no command {rest[0]!r} in: {words}"
        command, rest = command.commands[rest[0]], rest[1:]
    if "--help" not in rest:
        command.make_context(command.name or "", rest)  # raises a UsageError for what the command does not take


@pytest.mark.parametrize(("page", "words"), shell_lines("make"), ids=str)
def test_make_targets_exist(page: Path, words: list[str]) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert words[1] in targets, f"{page}: no make target {words[1]!r}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_linked_pages_exist(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


@pytest.mark.parametrize("example", [e for page in PAGES for e in find_examples(page) if e.prefix == "python"], ids=str)
def test_python_blocks_run(example: CodeExample, eval_example: EvalExample) -> None:
    eval_example.run(example)


def test_the_docs_have_examples_to_check() -> None:
    assert len(shell_lines("headway")) >= 5
    assert len(shell_lines("make")) >= 2
