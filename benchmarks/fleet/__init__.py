"""What the Postgres store and the Ray engine take."""
