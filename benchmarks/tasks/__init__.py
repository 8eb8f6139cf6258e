"""The task suite: a bank of believable code, a generator that seeds defects into it, and tasks written by hand."""
