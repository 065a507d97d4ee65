"""Values on the command line: what is none is refused in one sentence that says what is."""

import os
from pathlib import Path

import click
import pytest

from agent_run.cli.app import cli
from tests.support.command_line import Ask


@pytest.mark.parametrize("number", ["nan", "NaN", "inf", "-inf", "1e400", "x", "", "2", "-0.1"])
def test_a_share_is_a_number_from_0_to_1(ask: Ask, number: str) -> None:
    for arguments in (
        ("replay", "r", f"--min-confidence={number}"),
        ("qa", "a.md", "--checklist", "c.yaml", f"--min-confidence={number}"),
        ("advise", f"--predictability={number}"),
    ):
        answer = ask(*arguments)

        assert answer.code == 2, arguments
        assert f"{number!r} is not a number from 0 to 1" in answer.err


@pytest.mark.parametrize("number", ["nan", "inf", "-1"])
def test_an_amount_is_a_finite_number(ask: Ask, number: str) -> None:
    assert f"{number!r} is not a number of at least 0" in ask("advise", "--value", number).err
    said = ask("replay", "r", "--model", "test", "--max-cost-usd", number).err
    assert f"{number!r} is not a number above 0" in said


@pytest.mark.parametrize("price", ["x=nan/1", "x=1/inf", "x=-1/1", "=1/1", "x=1", "x=1e99/1"])
def test_a_price_is_dollars_in_and_out(ask: Ask, price: str) -> None:
    answer = ask("advise", "--price", price)

    assert answer.code == 2
    assert f"price {price!r} is not like 'gpt-5=1.25/10'" in answer.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("trace", "x", "--width", "abc"), "'abc' is not a whole number from 10 to 400"),
        (("trace", "x", "--width", "3"), "'3' is not a whole number from 10 to 400"),
        (("execute", "x", "--attempts", "0"), "'0' is not a whole number of at least 1"),
        (
            ("execute", "x", "--attempts", "9" * 30),
            f"'{'9' * 30}' is not a whole number from 1 to 9223372036854775807",
        ),
        (("claim", "x", "--ttl", "0s"), "'0s' is not a duration of more than 0s and at most"),
        (("claim", "x", "--ttl", "99999d"), "'99999d' is not a duration of more than 0s and"),
        (("claim", "x", "--ttl", "soon"), "'soon' is not a duration, expected something like"),
        (("completion",), "missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish;"),
        (("status", "a", "b", "c"), "takes no further arguments, got 'b c';"),
        (("metrics", "--prometheus", "--json"), "--prometheus and --json cannot be given tog"),
    ],
)
def test_a_wrong_value_says_what_is_right_on_one_line(
    ask: Ask, arguments: tuple[str, ...], said: str
) -> None:
    answer = ask(*arguments)

    assert answer.code == 2
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1
    assert "\\n" not in answer.err


@pytest.mark.parametrize("place", ["nope/m.html", "repo-142.yaml/m.html"])
def test_an_output_that_cannot_be_written_is_2_before_any_work(ask: Ask, place: str) -> None:
    answer = ask("metrics", "--html", place)

    assert answer.code == 2
    assert f"{place!r} cannot be written: " in answer.err


@pytest.mark.timeout(30)
def test_a_pipe_that_nobody_reads_is_not_waited_for(ask: Ask, folder: Path) -> None:
    os.mkfifo(folder / "pipe.html")

    answer = ask("metrics", "--html", "pipe.html")

    assert answer.code == 2
    assert "'pipe.html' cannot be written: No such device" in answer.err


def _groups(command: click.Command, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    if not isinstance(command, click.Group):
        return []
    context = click.Context(command, info_name=path[-1])
    inner = [
        (name, command.get_command(context, name)) for name in command.list_commands(context)
    ]
    found = [one for name, held in inner if held for one in _groups(held, (*path, name))]
    return [path, *found]


@pytest.mark.parametrize("path", _groups(cli, ("agent-run",)))
def test_the_help_of_a_group_says_every_sentence_to_its_end(
    ask: Ask, path: tuple[str, ...]
) -> None:
    answer = ask(*path[1:], "--help")

    assert answer.code == 0
    assert "..." not in answer.out.partition("Commands:")[2]
