"""What a reviewer looks at: the diff and the transcript of the newest attempt.

Both were written by strangers: every line passes through `visible` before it is shown.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from agent_run.desk import Desk
from agent_run.errors import StoreError, UnknownTask
from agent_run.ledger.state import TaskState

Exhibit: TypeAlias = Literal["diff", "transcript"]


def exhibit(desk: Desk, task: TaskState, which: Exhibit) -> str:
    """Return the diff or the transcript as text; the empty string if there is none.

    Raises:
        StoreError: The ledger names one that it does not hold any more.
    """
    observed = task.observed if isinstance(task.observed, dict) else {}
    digest = observed.get(which)
    if not isinstance(digest, str):
        return ""
    content = desk.store.blob(digest)
    if content is None:
        msg = f"the {which} {digest} of task {task.manifest.task_id!r} is not in this ledger"
        raise StoreError(msg)
    return content.decode("utf-8", "backslashreplace")


def demanded(desk: Desk, task: TaskState, wanted: Sequence[Exhibit]) -> dict[str, str]:
    """Return what there is of the diff and the transcript; what is missing is empty.

    Raises:
        UnknownTask: Nothing of the kind was handed in.
    """
    found: dict[str, str] = {which: exhibit(desk, task, which) for which in wanted}
    if not any(found.values()):
        msg = f"task {task.manifest.task_id!r} has no {' and no '.join(wanted)}"
        raise UnknownTask(msg)
    return found
