"""What goes wrong in ways that the user can act on."""


class StackError(Exception):
    """One or more sentences for the user; the command line prints them without a traceback."""
