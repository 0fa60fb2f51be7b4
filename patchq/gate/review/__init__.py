"""Decisions of people, by command or by plain git; proposals that follow their target."""
