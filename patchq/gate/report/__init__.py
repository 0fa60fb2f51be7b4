"""What is told of a response, and what is repeated nowhere: report, page, message, codes, logs."""
