# What the package exports, for type checkers; `__init__.py` loads it when asked for.

from agent_run.contract.brief import Brief as Brief
from agent_run.contract.budget import Budget as Budget
from agent_run.contract.budget import Spend as Spend
from agent_run.contract.claim import ClaimCheck as ClaimCheck
from agent_run.contract.envelope import Envelope as Envelope
from agent_run.contract.manifest import Manifest as Manifest
from agent_run.contract.notes import Notes as Notes
from agent_run.contract.plan import Plan as Plan
from agent_run.contract.record import Question as Question
from agent_run.contract.record import Record as Record
from agent_run.contract.shapes import Orchestration as Orchestration
from agent_run.contract.shapes import Routing as Routing
from agent_run.contract.verdict import Finding as Finding
from agent_run.contract.verdict import Verdict as Verdict
from agent_run.desk import Desk as Desk
from agent_run.errors import AgentRunError as AgentRunError
from agent_run.errors import InvalidDocument as InvalidDocument
from agent_run.errors import NotClaimable as NotClaimable
from agent_run.errors import OverBudget as OverBudget
from agent_run.errors import StaleClaim as StaleClaim
from agent_run.executors.function import executor as executor
from agent_run.version import __version__ as __version__
from agent_run.wiring import Settings as Settings
from agent_run.wiring import open_desk as open_desk
from agent_run.wiring.running import run_plan as run_plan

__all__ = [
    "AgentRunError",
    "Brief",
    "Budget",
    "ClaimCheck",
    "Desk",
    "Envelope",
    "Finding",
    "InvalidDocument",
    "Manifest",
    "NotClaimable",
    "Notes",
    "Orchestration",
    "OverBudget",
    "Plan",
    "Question",
    "Record",
    "Routing",
    "Settings",
    "Spend",
    "StaleClaim",
    "Verdict",
    "__version__",
    "executor",
    "open_desk",
    "run_plan",
]
