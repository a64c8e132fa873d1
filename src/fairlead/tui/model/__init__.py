"""The content of the view, computed without a screen."""
