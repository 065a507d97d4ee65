"""Gates about the files: what may be changed, and how much."""

from typing import Final

from agent_run.contract.verdict import Finding, Reason
from agent_run.ports.gate import Case
from agent_run.ports.workspace import Candidate

_MOST_NAMED: Final = 100
"""A page of the ledger is for people: of thousands of strays, these many are named."""
_LONGEST_SENTENCE: Final = 1_000


class ScopeGate:
    """Is every change of an allowed kind, at an allowed place; and is there one at all?"""

    name = "scope"

    async def check(self, case: Case) -> tuple[Finding, ...]:
        """Return one finding for each reason that something was refused, or one that passes."""
        candidate = case.candidate
        if candidate is None:
            return self._unseen(case)
        if candidate.refused:
            reasons = dict.fromkeys(issue.reason for issue in candidate.refused)
            return tuple(self._refused(candidate, reason) for reason in reasons)
        failed = bool(case.observed.get("error"))  # the record gate tells of it
        if case.manifest.allowed_paths and not candidate.changes and not failed:
            return (self._finding("no_change", "no allowed file differs from the base"),)
        paths = tuple(change.path for change in candidate.changes)
        said = f"{len(paths)} changed, all allowed" if paths else "nothing changed, as allowed"
        return (
            Finding(
                gate=self.name, outcome="pass", reason="verified", evidence=said, paths=paths
            ),
        )

    def _unseen(self, case: Case) -> tuple[Finding, ...]:
        """Say that nobody saw the files; where none may be written there are none to see."""
        if not case.manifest.allowed_paths:
            return ()
        said = "the work was not done in a copy of ours, so nobody saw what it changed"
        return (
            Finding(
                gate=self.name, outcome="inconclusive", reason="no_evidence", evidence=said
            ),
        )

    def _refused(self, candidate: Candidate, reason: Reason) -> Finding:
        issues = [issue for issue in candidate.refused if issue.reason == reason]
        shown = issues[:_MOST_NAMED]
        sentences = [issue.sentence[:_LONGEST_SENTENCE] for issue in shown]
        if len(issues) > len(shown):
            sentences.append(f"and {len(issues) - len(shown)} more, which are not named here")
        return self._finding(reason, "\n".join(sentences), tuple(one.path for one in shown))

    def _finding(self, reason: Reason, evidence: str, paths: tuple[str, ...] = ()) -> Finding:
        return Finding(
            gate=self.name, outcome="fail", reason=reason, evidence=evidence, paths=paths
        )


class DiffSizeGate:
    """Is the change small enough to be reviewed, where the manifest says how small?"""

    name = "diff size"

    async def check(self, case: Case) -> tuple[Finding, ...]:
        """Return one finding where the manifest sets a limit."""
        manifest, candidate = case.manifest, case.candidate
        limits = (manifest.max_diff_lines, manifest.max_diff_files)
        if candidate is None or limits == (None, None):
            return ()
        counted = (
            (candidate.lines, limits[0], "lines"),
            (len(candidate.changes), limits[1], "files"),
        )
        over = [
            f"{count} {unit} > {limit}"
            for count, limit, unit in counted
            if limit and count > limit
        ]
        evidence = (
            "; ".join(over) or f"{candidate.lines} lines in {len(candidate.changes)} files"
        )
        return (
            Finding(
                gate=self.name,
                outcome="fail" if over else "pass",
                reason="out_of_scope" if over else "verified",
                evidence=evidence,
            ),
        )
