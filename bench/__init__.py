"""Measures Fairlead against bare Python and its peers: `python -m bench`, from the repository root."""
