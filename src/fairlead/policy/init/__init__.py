"""Creates a new policy file: the template, and the checks that a project already has."""
