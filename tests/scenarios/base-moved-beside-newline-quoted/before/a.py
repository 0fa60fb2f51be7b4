a

def f():
    pass
