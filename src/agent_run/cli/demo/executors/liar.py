"""Does the task, but says it changed and ran more than it did."""

import runpy
from pathlib import Path

good = runpy.run_path(str(Path(__file__).with_name("well_behaved.py")))

if __name__ == "__main__":
    good["fix"]()
    good["hand_in"]({**good["RECORD"], "status": "done", "risks": []})
