"""The work of `eval canary`: dividing the work of a plan, and judging the new version."""

import json
from dataclasses import replace

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.documents import load_as, read_file
from agent_run.cli.work.door import opened
from agent_run.cli.work.measuring import facts, moment_of
from agent_run.cli.work.wording import dumped
from agent_run.contract.plan import Plan
from agent_run.contract.reading import load
from agent_run.errors import InvalidDocument
from agent_run.ledger.metrics.facts import tasks_of
from agent_run.ledger.metrics.report import proportion_json
from agent_run.ledger.metrics.statistics import Proportion, median
from agent_run.topology.canary import LABEL, Arm, Canary, assign_plan, stopped
from agent_run.topology.canary import judge as judged
from agent_run.wiring.opening import wall_clock


def assign(speech: Speech, *, canary: str, plan: str) -> int:
    """Print the plan as both versions will do it."""
    document = load_as(read_file(plan), "plan")
    if not isinstance(document, Plan):
        msg = f"{plan}: is not a plan"
        raise InvalidDocument(msg)
    divided = assign_plan(_unless_stopped(speech, _canary(canary)), document)
    told = dumped(divided, brief=True)
    if speech.as_json and isinstance(told, dict):
        speech.object(told)
    else:
        speech.show(*json.dumps(told, indent=2).splitlines())
    variants = [step.labels.get(LABEL) for step in divided.steps]
    for variant in sorted({one for one in variants if one}):
        speech.tell(f"{variants.count(variant)} of {len(variants)} steps: {variant}")
    return Exit.DONE


def judge(speech: Speech, *, canary: str, since: str | None) -> int:
    """Compare both versions, and recommend what to do."""
    document = _canary(canary)
    moment = None if since is None else moment_of(since, now=wall_clock())
    with opened(speech) as door:
        tasks = tasks_of(facts(door, None, moment))
    verdict = judged(document, tasks)
    arms = (verdict.baseline, verdict.canary)
    if speech.as_json:
        speech.object(
            {
                "canary": document.name,
                "action": verdict.action,
                "why": list(verdict.why),
                "variants": [_as_json(arm) for arm in arms],
            }
        )
    else:
        head = ("VARIANT", "TASKS", "SETTLED", "ERRORS", "OVERRIDES", "PER HOUR", "COST")
        speech.table(head, [_cells(arm) for arm in arms])
        speech.show(f"{verdict.action}:", *(f"  {reason}" for reason in verdict.why))
    return Exit.FAILED if verdict.action in {"roll back", "stop"} else Exit.DONE


def _unless_stopped(speech: Speech, canary: Canary) -> Canary:
    """Return the canary, sending nothing more to a version that has passed a limit."""
    with opened(replace(speech, quiet=True)) as door:
        verdict = judged(canary, tasks_of(facts(door, None, None)))
    if verdict.action != "stop":
        return canary
    speech.warn(f"the canary is stopped: {'; '.join(verdict.why)}")
    return stopped(canary)


def _canary(file: str) -> Canary:
    return load(Canary, read_file(file))


def _cells(arm: Arm) -> tuple[str, ...]:
    cost = median(arm.costs)
    return (
        arm.variant,
        str(arm.tasks),
        str(arm.settled),
        _share(arm.errors),
        _share(arm.overrides),
        "" if arm.per_hour is None else f"{arm.per_hour:.1f}",
        "" if cost is None else f"${cost:g}",
    )


def _share(share: Proportion) -> str:
    return f"{share.hits} of {share.of}"


def _as_json(arm: Arm) -> Json:
    return {
        "variant": arm.variant,
        "tasks": arm.tasks,
        "settled": arm.settled,
        "errors": proportion_json(arm.errors),
        "overrides": proportion_json(arm.overrides),
        "per_hour": arm.per_hour,
        "median_seconds": median(arm.seconds),
        "median_cost_usd": median(arm.costs),
        "unpriced_requests": arm.unpriced,
    }
