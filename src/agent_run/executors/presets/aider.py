"""aider: `aider --message-file`, edits as text, no shell and no record.

It exits with 0 whether or not a model answered: only the printed token count tells.
"""

import json
import re
from decimal import Decimal
from typing import Final

from agent_run.executors.presets import reading, shapes
from agent_run.executors.presets.demands import address, chat_model, key_of
from agent_run.executors.presets.prompt import brief_text

_TOKENS: Final = re.compile(
    r"^Tokens: ([\d.,]+)(k?) sent,.*?([\d.,]+)(k?) received", re.MULTILINE
)
_COST: Final = re.compile(r"Cost: \$(\d{1,9}(?:\.\d{1,9})?) message")
_MODEL: Final = re.compile(r"^(?:Main model|Model): (\S+)", re.MULTILINE)
_FAILURE: Final = re.compile(r"^litellm\.\w+: .*(?:\n(?!Retrying|The ).+)*", re.MULTILINE)
_DEAREST: Final = Decimal(10**9)


def invocation(assignment: shapes.Assignment) -> shapes.Invocation:
    endpoint, home = assignment.endpoint, assignment.home
    base_url, model = address(endpoint, "aider")
    message, settings = home / "message.md", home / "aider.conf.yml"
    # A price list in the cache, however empty, keeps it from fetching one.
    prices = home / ".aider" / "caches" / "model_prices_and_context_window.json"
    env = {
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    placeholder, secrets = key_of(endpoint, "OPENAI_API_KEY")
    return shapes.Invocation(
        argv=(
            *assignment.program.argv,
            *("--model", chat_model(model)),
            *("--message-file", str(message)),
            *_FLAGS,
            *("--config", str(settings)),
            *("--openai-api-base", base_url),
            *_histories(assignment),
            "--",
            *assignment.editable,
        ),
        cwd=assignment.workspace,
        env={**env, **placeholder},
        secrets=secrets,
        files={
            message: brief_text(assignment),
            settings: "{}\n",
            prices: json.dumps({"agent-run": {}}),
        },
        folders=(home / "tmp", prices.parent),
        readable=assignment.program.readable,
        hosts=endpoint.hosts(base_url),
    )


_FLAGS: Final = (
    *("--edit-format", "diff", "--map-tokens", "0"),
    "--no-git",
    "--no-gitignore",
    "--yes-always",
    "--no-pretty",
    "--no-stream",
    "--no-auto-lint",
    "--no-detect-urls",
    "--no-suggest-shell-commands",
    "--no-check-update",
    "--no-show-release-notes",
    "--no-show-model-warnings",
    "--analytics-disable",
    "--disable-playwright",
)


def _histories(assignment: shapes.Assignment) -> tuple[str, ...]:
    home = assignment.home
    return (
        *("--input-history-file", str(home / "input.history")),
        *("--chat-history-file", str(home / "chat.history.md")),
        *("--env-file", str(home / "none.env")),
    )


def read_events(output: shapes.Output) -> shapes.Observation:
    answers = _TOKENS.findall(output.stdout)
    costs = [Decimal(cost) for cost in _COST.findall(output.stdout)]
    model = _MODEL.search(output.stdout)
    return shapes.Observation(
        tokens_in=sum(_number(sent, unit) for sent, unit, _, _ in answers),
        tokens_out=sum(_number(received, unit) for _, _, received, unit in answers),
        requests_made=len(answers),
        cost_usd=sum(costs, start=Decimal(0)) or None,
        model=reading.clean(model.group(1)) if model else None,
        transcript=tuple(
            reading.clean(line) for line in output.stdout.split("\n") if line.strip()
        ),
        error=_error(output, answered=bool(answers)),
    )


def _error(output: shapes.Output, *, answered: bool) -> str | None:
    failures = _FAILURE.findall(output.stdout)
    if output.exit_code == 0 and answered:
        return None
    return reading.reason(failures[-1] if failures else "", output, "aider")


def _number(digits: str, unit: str) -> int:
    plain = digits.replace(",", "")
    if plain.count(".") > 1 or not plain.strip("."):
        return 0
    return int(min(Decimal(plain) * (1_000 if unit else 1), _DEAREST))


AIDER: Final = shapes.Preset("aider", "aider", invocation, read_events)
