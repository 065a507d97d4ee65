"""One hostile executor: what it does, and what must be said about it."""

from dataclasses import dataclass, field
from typing import Any

from agent_run.ports.fence import Limits

PYTEST = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 pytest tests/test_github_sync.py -q"
SMOKE = "python -m scripts.smoke_github_sync"
FAILED = frozenset({"executor_failed"})
OUTSIDE = frozenset({"out_of_scope"})
TAMPERED = frozenset({"tampered"})
INVALID = frozenset({"invalid_record"})
MISMATCH = frozenset({"record_mismatch"})


@dataclass(frozen=True, slots=True)
class Attack:
    """A script for the executor, and the reasons of which at least one must be named."""

    name: str
    script: str
    reasons: frozenset[str] = FAILED
    manifest: dict[str, Any] = field(default_factory=dict)
    limits: Limits | None = None
    named: str = ""
    """A word that what is said must contain."""


def held(name: str, deed: str, **more: Any) -> Attack:
    """An attack that the kernel must stop, or let go nowhere; it never comes to a good end.

    A deed that brings something back says so.
    """
    script = f"""
    try:
        {deed}
    except (OSError, subprocess.SubprocessError, LookupError, ImportError) as error:
        sys.exit("held: " + str(error))
    sys.exit("done")
    """
    return Attack(name, script, **more)


def refused(name: str, deed: str, **more: Any) -> Attack:
    """An attack whose very first step must be refused."""
    return held(name, f"{deed}; print(chr(108) + 'eak')", **more)


def edited(name: str, source: str, reasons: frozenset[str] = TAMPERED, **more: Any) -> Attack:
    """An attack by what the judged module does when tests import it."""
    manifest = {"verification": [PYTEST], **more.pop("manifest", {})}
    script = f"SYNC.write_text({source!r}); record()"
    return Attack(name, script, reasons, manifest, **more)
