"""Looks at a process under suspicion: what is taken of it, what two looks have between them, and what that is."""
