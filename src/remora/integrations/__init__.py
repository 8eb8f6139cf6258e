"""Both tracks for the agents of other frameworks. Each module needs its framework, which its extra installs."""
