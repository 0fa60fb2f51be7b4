"""One response, from its bytes to a verdict that can land; `process` tells the stages in order."""
