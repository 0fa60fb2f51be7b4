git branch other
