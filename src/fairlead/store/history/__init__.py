"""The history of sessions: what each did and cost, and the search in what it was told and ran."""
