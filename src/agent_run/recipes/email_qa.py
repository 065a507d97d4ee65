"""Customer e-mail QA: every answer to a customer, before it is sent.

Promises nobody may give are refused; what every answer owes the customer is asked for; the
question whether it answers what was asked is a person's, or a model's with a person behind.
"""

from pathlib import Path
from typing import Final

from agent_run.recipes.qa.checklist import Checklist
from agent_run.recipes.qa.rules import Rules

NAME: Final = "email-qa"
SAYS: Final = "Check answers to customers: promises, courtesy, links, spelling."
LEXICON: Final = Path(__file__).with_name("email_lexicon.yaml")
RULES: Final = Rules(lexicon=str(LEXICON))
CHECKLIST: Final = Checklist.model_validate(
    {
        "steps": [
            {
                "id": "promises",
                "goal": "Verify that no forbidden phrase promises what nobody may promise",
                "context": "No refund, date or guarantee beyond our terms",
                "max_attempts": 1,
                "min_confidence": 0.8,
                "time_budget_sec": 30,
            },
            {
                "id": "courtesy",
                "goal": "Verify that the tone is calm and plain",
                "max_attempts": 1,
                "min_confidence": 0.6,
                "time_budget_sec": 45,
            },
            {
                "id": "links",
                "goal": "Verify that every link leads somewhere",
                "max_attempts": 2,
                "min_confidence": 0.7,
                "time_budget_sec": 60,
            },
            {
                "id": "spelling",
                "goal": "Verify that no known misspelling is left",
                "max_attempts": 1,
                "min_confidence": 0.7,
                "time_budget_sec": 30,
            },
            {
                "id": "answered",
                "goal": "Judge whether the mail answers what the customer asked",
                "max_attempts": 1,
                "min_confidence": 0.8,
                "time_budget_sec": 60,
            },
        ],
        "overall_budget": {"max_attempts": 8, "max_tokens": 6_000, "time_budget_sec": 240},
    }
)
