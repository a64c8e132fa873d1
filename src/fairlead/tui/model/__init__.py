"""What the view shows, computed without a screen."""
