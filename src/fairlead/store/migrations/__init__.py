"""How an older database becomes one of today: a file per step, in `versions`. A released step never changes."""
