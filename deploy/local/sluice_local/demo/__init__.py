"""`make demo`: three tenants share a simulated cluster that is too small for them, live in one terminal.

scenario.py      who asks for how much, and when; the objects that it takes
stage.py         puts them into the cluster, and takes the last run's pods away
load.py          creates the pods
observation.py   what the cluster shows: an account of its own, independent of Sluice's, that checks it
audit.py         what Sluice says: `sluice audit tail -f`
screen.py        both, drawn; shows.py: or told line by line, where there is no terminal
summary.py       what came of it
"""
