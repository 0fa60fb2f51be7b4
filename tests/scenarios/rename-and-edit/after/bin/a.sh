one
2
three
four
5
