"""The widgets of the view."""
