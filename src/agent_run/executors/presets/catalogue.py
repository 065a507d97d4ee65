"""All presets by the name a configuration or a manifest calls them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from agent_run.executors.presets.aider import AIDER
from agent_run.executors.presets.claude import CLAUDE
from agent_run.executors.presets.codex import CODEX
from agent_run.executors.presets.mini_swe_agent import MINI_SWE_AGENT
from agent_run.executors.presets.opencode import OPENCODE
from agent_run.executors.presets.shapes import Preset

PRESETS: Final[Mapping[str, Preset]] = MappingProxyType(
    {preset.name: preset for preset in (CLAUDE, CODEX, OPENCODE, AIDER, MINI_SWE_AGENT)}
)
