"""Does the task, adds a test, and says truly what it did."""

import json
import sys
from pathlib import Path

WORKER = Path("src/github_sync.py")
TESTS = Path("tests/test_github_sync.py")
BROKEN = '''\
def fetch(session, path, sleep=time.sleep):
    """Return the JSON body of `path`."""
    response = session.get(path)
    if response.status != 200:
        raise SyncFailed(f"{path}: HTTP {response.status}")
    return response.body
'''
FIXED = '''\
MOST_TRIES = 6
LONGEST_DELAY = 29.0


def fetch(session, path, sleep=time.sleep):
    """Return the JSON body of `path`, however often GitHub asks us to wait."""
    for attempt in range(MOST_TRIES):
        response = session.get(path)
        if response.status == 200:
            return response.body
        if response.status != 429:
            raise SyncFailed(f"{path}: HTTP {response.status}")
        sleep(delay_before(attempt + 1, response.headers.get("Retry-After")))
    raise SyncFailed(f"{path}: rate limited {MOST_TRIES} times")


def delay_before(attempt, retry_after=None):
    """Return how long to wait before a try: what GitHub asks, else jittered and growing."""
    if retry_after is not None:
        return min(float(retry_after), LONGEST_DELAY)
    return min(random.uniform(0.5, 1.0) * 2**attempt, LONGEST_DELAY)
'''
NEW_TEST = """

class DelayTest(unittest.TestCase):
    def test_the_delay_grows_and_is_capped(self):
        self.assertLess(github_sync.delay_before(1), 2.1)
        self.assertLess(github_sync.delay_before(50), 30)
"""
RECORD = {
    "task_id": "repo-142",
    "status": "needs_review",
    "files_changed": [str(WORKER), str(TESTS)],
    "commands_run": [],
    "risks": ["Backoff constants tuned for current API rate window"],
    "next_step": "Review retry cap before merging",
}


def fix() -> None:
    """Handle the answer 429 in the worker."""
    before = WORKER.read_text()
    WORKER.write_text(
        before.replace(BROKEN, FIXED).replace("import time", "import random\nimport time")
    )


def hand_in(record: object) -> None:
    """Print the record where the worker looks for it."""
    sys.stdout.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    fix()
    TESTS.write_text(TESTS.read_text() + NEW_TEST)
    hand_in(RECORD)
