"""Commands about the policy file: write, check, explain and test it."""
