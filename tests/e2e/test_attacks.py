# SPDX-License-Identifier: MIT
"""What an attacker tries, each on a real API server under the rights of k8s/: one function or more per
number, test_attack_NN_what. Each was seen to fail on version 0.1.0."""


# ---- 1


# ---- 2


# ---- 3


# ---- 4


# ---- 5


# ---- 6


# ---- 7


# ---- 8


# ---- 9


# ---- 10


# ---- 11


# ---- 12


# ---- 13


# ---- 14
