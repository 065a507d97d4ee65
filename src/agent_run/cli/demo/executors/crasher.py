"""Dies in the middle of a write."""

import os
import signal
from pathlib import Path

if __name__ == "__main__":
    worker = Path("src/github_sync.py")
    whole = worker.read_text()
    worker.write_text(whole[: len(whole) // 2])
    os.kill(os.getpid(), signal.SIGKILL)
