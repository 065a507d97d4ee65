"""How a command is declared: its words here, its work in a room that loads when it runs.

The options that every command has may stand before or after its name.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from agent_run.cli.menu import MENU, Entry
from agent_run.cli.speech import Speech

_ASKED: Final = "agent_run.asked"
_EVERYWHERE: Final = {
    "as_json": (("--json",), True, "Answer with one JSON object."),
    "store": (("--store",), False, "The ledger: sqlite:///PATH or postgresql://..."),
    "no_color": (("--no-color",), True, "No colours, as NO_COLOR does."),
    "quiet": (("-q", "--quiet"), True, "Say nothing on stderr but errors."),
    "verbose": (("-v", "--verbose"), True, "Say more; show the traceback of a crash."),
}
FENCE: Final = click.option(
    "--fence",
    type=click.Choice(("require", "prefer", "off")),
    help="Whether work may begin on a machine that cannot hold it.",
)
DRY_RUN: Final = click.option(
    "--dry-run", is_flag=True, help="Say what would happen; change nothing."
)
FunctionT = TypeVar("FunctionT", bound=Callable[..., object])


def common_options() -> list[click.Parameter]:
    """Return the options that every command has; each notes its value for `speech_of`."""
    return [
        click.Option(
            [*names, name],
            is_flag=is_flag,
            metavar=None if is_flag else "URL",
            help=says,
            expose_value=False,
            callback=_note,
        )
        for name, (names, is_flag, says) in _EVERYWHERE.items()
    ]


def speech_of(context: click.Context) -> Speech:
    """Return how to speak, whether it was said before or after the command's name."""
    return Speech(**context.meta.get(_ASKED, {}))


def works_in(target: str) -> Callable[[Callable[[], None]], click.Command]:
    """Declare a command whose work is the function at `module:attribute`.

    The function gets a `Speech` and the values of the declared parameters, and returns the
    exit code.
    """

    def declared(words: Callable[[], None]) -> click.Command:
        parameters: list[click.Parameter] = list(getattr(words, "__click_params__", ()))

        def work(**values: Any) -> int:
            do = loaded(target)
            # From here on there may be garbage; what was loaded is none of it.
            gc.freeze()
            gc.enable()
            code: int = do(speech_of(click.get_current_context()), **values)
            return code

        return click.Command(
            words.__name__.rstrip("_"),
            callback=work,
            params=[*reversed(parameters), *common_options()],
            help=words.__doc__,
        )

    return declared


def loaded(target: str) -> Any:
    """Import the module of `module:attribute` and return the attribute."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


class Unheard(Exception):
    """The reader of our output is gone. Click would turn a broken pipe into a failure."""


class Group(click.Group):
    """A group below a command of the menu, whose help says every sentence to its end."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = self.list_commands(ctx)
        known = [(name, self.get_command(ctx, name)) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl([(name, _first_of(one.help)) for name, one in known if one])


def _first_of(text: str | None) -> str:
    """Return the first paragraph of a help, on one line."""
    return " ".join((text or "").strip().partition("\n\n")[0].split())


class LazyGroup(click.Group):
    """A group that shows its whole menu and imports only the command that is run."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        with _heard():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _heard():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._entries())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._entries().get(cmd_name)
        if entry is None:
            return None
        command: click.Command = loaded(entry.declared)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in self._entries() and not name.startswith("-"):
            raise click.exceptions.NoSuchCommand(
                name, message=f"no command {name!r}.", possibilities=self._entries(), ctx=ctx
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(len(name) for name in self._entries())
        for section, entries in MENU.items():
            with formatter.section(section):
                formatter.write_dl(
                    [(name.ljust(widest), entry.says) for name, entry in entries.items()]
                )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        named = [
            CompletionItem(name, help=entry.says)
            for name, entry in self._entries().items()
            if name.startswith(incomplete)
        ]
        # The group's own answer would load every command to ask for its help.
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]

    def _entries(self) -> dict[str, Entry]:
        return {name: entry for entries in MENU.values() for name, entry in entries.items()}


@contextmanager
def _heard() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise Unheard from error


def _note(context: click.Context, parameter: click.Parameter, value: object) -> None:
    if value and parameter.name:
        context.meta.setdefault(_ASKED, {})[parameter.name] = value
