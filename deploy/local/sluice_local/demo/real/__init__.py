"""`make demo-real`: the story of `make demo` on a real node, with the real operators, and programs that compute.

scenario.py      who asks for how much, of which programs
play.py          what happens, scene by scene
results.py       what the programs have found out, and whether that is right
summary.py       that, and who held how much beside what it deserved

All else is that of `make demo`.
"""
