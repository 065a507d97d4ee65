"""Declares the recipes: qa and configure."""

import click

from agent_run.cli.declaring import works_in
from agent_run.cli.values import NAME, PLACE, SHARE, TEXT


@works_in("agent_run.cli.work.recipes:qa")
@click.argument("drafts", nargs=-1, type=PLACE, required=True, metavar="DRAFT...")
@click.option(
    "--checklist",
    type=PLACE,
    required=True,
    metavar="FILE",
    help="The steps and what each may cost.",
)
@click.option("--offline", is_flag=True, help="Ask no web page and no model.")
@click.option(
    "--report",
    "reports",
    type=PLACE,
    multiple=True,
    metavar="FILE",
    help="Write the report to FILE: .md, .json or .html. May be given more than once.",
)
@click.option(
    "--min-confidence",
    type=SHARE,
    metavar="X",
    help="How sure a check must be, instead of what the checklist says.",
)
@click.option(
    "--accept",
    type=TEXT,
    multiple=True,
    metavar="WORDS",
    help="Words that are spelled right here.",
)
@click.option(
    "--accept-list", type=PLACE, metavar="FILE", help="A text file of such words, a line each."
)
@click.option(
    "--style", type=PLACE, metavar="PATH", help="Rules for tone: a Vale style folder or file."
)
@click.option(
    "--lexicon", type=PLACE, metavar="FILE", help="Phrases that must or must not stand."
)
@click.option(
    "--allow-host",
    "allow_hosts",
    multiple=True,
    metavar="HOST",
    help="A host that links may lead to although it is private. May be given more than once.",
)
@click.option("--model", type=TEXT, metavar="NAME", help="A model that reads the drafts, too.")
@click.option("--reflect", is_flag=True, help="Let the results be looked at once more.")
@click.option("--fresh", is_flag=True, help="Check everything again, whatever is known.")
@click.option(
    "--key", type=PLACE, metavar="FILE", help="Right answers, to say how good the checks are."
)
@click.option("--dry-run", is_flag=True, help="Show the plans; check nothing.")
def qa() -> None:
    """Check drafts against a checklist, and report.

    What failed or is in doubt goes to the inbox with its evidence. Drafts and rules that have
    not changed are not checked again. The exit code is 0 if all drafts pass, 1 if one fails,
    and 7 if one needs a person.
    """


@works_in("agent_run.cli.work.recipes:configure")
@click.argument("said", nargs=-1, type=TEXT, metavar="[TEXT]...")
@click.option("--run", "run_id", type=NAME, metavar="RUN", help="The conversation to go on.")
@click.option("--model", type=TEXT, metavar="NAME", help="A model that listens and plans.")
def configure() -> None:
    """Turn a conversation into a plan, and follow it.

    Each TEXT is one turn. A silent annotator keeps notes; when they are clear enough, the
    whole plan is written and then followed. Without TEXT it goes on from where it stands.
    """
