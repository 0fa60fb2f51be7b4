"""The review page in a real browser; `pytest -m browser` runs them, where Chromium is installed."""
