"""Programs of Lustre; README.md one folder up says which rule follows which source."""
