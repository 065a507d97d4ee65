"""What each command does once it is really run; `--help` and completion never come here."""
