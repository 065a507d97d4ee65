"""The version, alone in its module so that `--version` loads nothing else."""

__version__ = "0.1.0"
