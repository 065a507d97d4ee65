"""`python -m agent_run` is `agent-run`."""

import sys

from agent_run.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
