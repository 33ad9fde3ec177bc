# SPDX-License-Identifier: GPL-3.0-or-later
"""Notebooks as jobs of Slurm, on the nodes of a cluster.

Why not batchspawner: it asks squeue for each notebook by itself, fills what a user chose into a shell script,
hands the token of a notebook to Slurm, and knows neither certificates nor why a job has ended.
"""
