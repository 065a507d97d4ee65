"""The command line: parse, ask the desk, show; no rule lives here."""
