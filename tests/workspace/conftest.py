from pathlib import Path

import pytest

from tests.workspace.world import World, new_world


@pytest.fixture
def world(tmp_path: Path) -> World:
    return new_world(tmp_path)
