"""Finds what is wrong with an install. Gathering and judging are apart.

`gather` looks, asks and runs, and gives plain facts; the checks are functions from facts to findings, which touch
nothing. Prints nothing: that is the command's.
"""
