"""Reports on agents: facts about one agent, totals over many, and their rendering as Markdown, HTML or SARIF."""
