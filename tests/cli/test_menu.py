"""The menu keeps its word: each line is the command's own, and each command can work."""

import inspect

import click
import pytest

from agent_run import errors
from agent_run.cli.app import cli
from agent_run.cli.declaring import loaded
from agent_run.cli.exits import Exit, exit_code_of
from agent_run.cli.handing_over import KINDS
from agent_run.cli.menu import MENU
from agent_run.cli.work.documents import MODELS
from agent_run.errors import AgentRunError

ENTRIES = {name: entry for entries in MENU.values() for name, entry in entries.items()}
EVERYWHERE = {"--json", "--store", "--no-color", "--quiet", "--verbose"}


@pytest.mark.parametrize("name", ENTRIES)
def test_each_line_of_the_menu_is_how_the_commands_own_help_begins(name: str) -> None:
    command = loaded(ENTRIES[name].declared)

    assert isinstance(command, click.Command)
    assert command.name == name
    assert command.help is not None
    assert inspect.cleandoc(command.help).partition("\n")[0] == ENTRIES[name].says


@pytest.mark.parametrize("name", ENTRIES)
def test_each_command_has_the_options_that_all_have(name: str) -> None:
    command = loaded(ENTRIES[name].declared)

    options = {option for parameter in command.params for option in parameter.opts}

    assert options >= EVERYWHERE


@pytest.mark.parametrize("name", ENTRIES)
def test_what_is_declared_is_what_the_work_takes(name: str) -> None:
    command = loaded(ENTRIES[name].declared)
    if isinstance(command, click.Group):
        command = command.commands["show"]
    assert command.callback is not None
    target = inspect.getclosurevars(command.callback).nonlocals["target"]
    taken = inspect.signature(loaded(target)).parameters

    declared = {parameter.name for parameter in command.params if parameter.expose_value}

    names = {each.name for each in taken.values() if each.kind is each.KEYWORD_ONLY}
    open_ended = any(each.kind is each.VAR_KEYWORD for each in taken.values())
    assert names == declared or (open_ended and names <= declared)


def test_the_help_shows_every_section() -> None:
    shown = cli.get_help(click.Context(cli, info_name="agent-run"))

    for section, entries in MENU.items():
        assert f"{section}:" in shown
        for entry in entries.values():
            assert entry.says in shown


def test_the_kinds_that_can_be_named_are_the_kinds_that_can_be_read() -> None:
    assert set(KINDS) == set(MODELS)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidDocument("x"), 2),
        (errors.ContractError("x"), 2),
        (errors.UnknownRun("x"), 2),
        (errors.UnknownTask("x"), 2),
        (errors.AlreadyPosted("x"), 2),
        (errors.Unfit("x"), 3),
        (errors.FenceUnavailable("x"), 3),
        (errors.StoreError("x"), 3),
        (errors.NotClaimable("x"), 5),
        (errors.StaleClaim("x"), 5),
        (errors.OverBudget("x"), 6),
        (errors.TransitionError("x"), 1),
        (errors.TooBusy("x"), 1),
        (errors.AgentRunError("x"), 1),
    ],
)
def test_each_error_has_its_exit_code(error: AgentRunError, code: int) -> None:
    assert exit_code_of(error) == code


def test_the_exit_codes_are_the_promised_ones() -> None:
    assert [code.value for code in Exit] == [0, 1, 2, 3, 4, 5, 6, 7, 130]
