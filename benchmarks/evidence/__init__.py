"""How much of what the next call needs a memory still shows, measured on recorded runs of other people's agents."""
