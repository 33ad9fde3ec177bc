"""Which jobs prove a change: their inputs, what has changed since the last landing, and whose turn it is."""
