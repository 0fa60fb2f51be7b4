"""Questions to a configured model, and the checks of its answers.

An answer is believed only as far as the program can check it.  Without a configured model nothing
here runs, and nothing leaves the machine.
"""
