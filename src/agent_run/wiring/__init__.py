"""Where the house is put together: settings in, a working desk out."""

from agent_run.wiring.opening import open_desk
from agent_run.wiring.settings import Settings

__all__ = ["Settings", "open_desk"]
