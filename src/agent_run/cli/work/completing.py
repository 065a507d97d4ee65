"""The work of `completion`: the script a shell loads to complete our commands."""

from click.shell_completion import get_completion_class

from agent_run.cli.app import COMPLETE, NAME, cli
from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech


def completion(speech: Speech, *, shell: str) -> int:
    """Print the script for one shell."""
    kind = get_completion_class(shell)
    if kind is None:
        msg = f"no completion for shell {shell!r}"
        raise AssertionError(msg)
    script = kind(cli, {}, NAME, COMPLETE).source()
    if speech.as_json:
        speech.object({"shell": shell, "script": script})
    else:
        # The script is ours, and its tabs belong to it.
        for line in script.expandtabs().splitlines():
            speech.show(line)
    return Exit.DONE
