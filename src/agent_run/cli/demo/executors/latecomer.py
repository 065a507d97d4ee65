"""Does the task well, but long after its claim has run out."""

import runpy
import time
from pathlib import Path

good = runpy.run_path(str(Path(__file__).with_name("well_behaved.py")))

if __name__ == "__main__":
    time.sleep(1.1)
    good["fix"]()
    good["hand_in"]({**good["RECORD"], "files_changed": ["src/github_sync.py"]})
