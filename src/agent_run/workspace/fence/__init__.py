"""The fence: commands of strangers, held by the kernel and ended for certain."""

from agent_run.workspace.fence.probe import Mode, open_fence, probe

__all__ = ["Mode", "open_fence", "probe"]
