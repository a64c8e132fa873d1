"""The dialect of each agent client: how it wants to be answered."""
