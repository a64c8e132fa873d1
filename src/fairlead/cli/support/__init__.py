"""Code that several commands share: Click classes, parameter types, the mail client, and text for terminals."""
