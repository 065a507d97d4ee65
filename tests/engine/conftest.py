"""A fresh project for each test, with a ledger whose clock can jump."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.projects import Project, Stage, new_project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return new_project(tmp_path)


@pytest.fixture
def stage(project: Project) -> Iterator[Stage]:
    with Stage(project) as stage:
        yield stage
