"""Content checkers that need no model: brand tone, compliance phrases, links, spelling."""
