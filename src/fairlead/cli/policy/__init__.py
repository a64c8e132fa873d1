"""Commands about the policy file: write, check, show, explain, test and trust it."""
