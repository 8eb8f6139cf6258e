"""Tasks for agents that no adapter was trained on, checked by their files."""
