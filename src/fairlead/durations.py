"""An hour and a day, in seconds."""

HOUR = 3600.0
DAY = 24 * HOUR
