"""Documentation review: every page of a manual, before a release.

A page that sends its readers nowhere is broken; a page with slips is not finished; a page in
another voice is somebody's to decide.
"""

from typing import Final

from agent_run.recipes.qa.checklist import Checklist

NAME: Final = "documentation-review"
SAYS: Final = "Review pages of documentation: links, spelling, voice."
CHECKLIST: Final = Checklist.model_validate(
    {
        "steps": [
            {
                "id": "links",
                "goal": "Verify that every link leads somewhere",
                "context": "Files and headings of the manual, and web pages",
                "max_attempts": 2,
                "min_confidence": 0.9,
                "time_budget_sec": 300,
            },
            {
                "id": "spelling",
                "goal": "Verify that no known misspelling is left",
                "max_attempts": 1,
                "min_confidence": 0.7,
                "time_budget_sec": 30,
            },
            {
                "id": "voice",
                "goal": "Verify that the page speaks in our plain voice",
                "context": "The starter rules for a plain and honest voice",
                "max_attempts": 1,
                "min_confidence": 0.6,
                "time_budget_sec": 45,
            },
        ],
        "overall_budget": {"max_attempts": 6, "max_tokens": 6_000, "time_budget_sec": 400},
    }
)
