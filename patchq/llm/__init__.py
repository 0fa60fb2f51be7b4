"""Questions to a configured model, whose answers are believed as far as the program can check
them.  Without a configured model nothing here runs, and nothing leaves the machine."""
