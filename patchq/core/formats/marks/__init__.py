"""The signs that formats share: fences, labels, headings, paths, blocks between markers."""
