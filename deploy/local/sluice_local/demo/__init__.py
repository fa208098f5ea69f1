"""`make demo`: three applications share a simulated cluster that is too small for them, live in one terminal.

scenario.py      who asks for how much; the objects that it takes
operators.py     stand-ins for the Spark operator and KubeRay, which make the pods
stage.py         puts the rest into the cluster, and takes the last run away
scenes.py        what happens; play.py: scene by scene, whichever these are
observation.py   what the cluster shows: an account of its own, independent of Sluice's, that checks it
audit.py         what Sluice says: `sluice audit tail -f`; story.py: that, for people to follow
screen.py        both, drawn; shows.py: or told line by line, where there is no terminal
summary.py       what came of it
running.py       all of that at once
real/            the same with containers that run: `make demo-real`
"""
