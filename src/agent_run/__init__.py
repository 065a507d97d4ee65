"""The handoff layer for multi-agent systems: contracts that hold.

Names are loaded when they are first asked for, so that importing the package costs nothing.
What each of them is stands in `__init__.pyi`, which type checkers read.
"""

from importlib import import_module

from agent_run.version import __version__

_HOMES = {
    "AgentRunError": "errors",
    "Brief": "contract.brief",
    "Budget": "contract.budget",
    "ClaimCheck": "contract.claim",
    "Desk": "desk",
    "Envelope": "contract.envelope",
    "Finding": "contract.verdict",
    "InvalidDocument": "errors",
    "Manifest": "contract.manifest",
    "NotClaimable": "errors",
    "Notes": "contract.notes",
    "Orchestration": "contract.shapes",
    "OverBudget": "errors",
    "Plan": "contract.plan",
    "Question": "contract.record",
    "Record": "contract.record",
    "Routing": "contract.shapes",
    "Settings": "wiring",
    "Spend": "contract.budget",
    "StaleClaim": "errors",
    "Verdict": "contract.verdict",
    "executor": "executors.function",
    "open_desk": "wiring",
    "run_plan": "wiring.running",
}
"""Public name -> the room it lives in."""

__all__ = [  # noqa: PLE0604 - every name is a string; a test compares them with the stub
    *(name for name in _HOMES if name < "__version__"),
    "__version__",
    *(name for name in _HOMES if name > "__version__"),
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
