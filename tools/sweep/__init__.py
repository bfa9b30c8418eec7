"""A sweep over shapes that nobody chose: every kernel of a program is planned and verified for many machines.

Sides are drawn uniformly, so most are odd and many are prime. Nothing runs, but for some programs on the CPU, whose
results numpy checks. ``hatch run sweep --help`` says how to ask for more, or for one program again.
"""
