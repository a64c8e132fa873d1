"""The commands that an event asks for, as plans: data that another process carries out."""
