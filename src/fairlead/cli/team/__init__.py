"""`fairlead team`: several hosts as one team."""
