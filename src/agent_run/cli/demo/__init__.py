"""The first run: a real repository, a task, and six executors of which one can be trusted."""
