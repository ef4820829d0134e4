"""stub"""
class ForeignWriter:
    def __init__(self,*a): pass
