# SPDX-License-Identifier: MIT
"""The commands of README.md, word for word."""

import os
import re

from controlplane import TOP


def section(heading, text=None):
    """What stands below '## HEADING', up to the next of its level."""
    if text is None:
        with open(os.path.join(TOP, "README.md"), encoding="utf-8") as f:
            text = f.read()
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert found, f"README.md has no section '{heading}'"
    return found.group(1)


def blocks(heading, text=None):
    """The code blocks of a section, in order; each as (the paragraph before it, its commands)."""
    found = re.findall(r"(?:^|\n\n)((?:(?!\n\n|```).)*?)\n*^```[a-z]*\n(.*?)^```$", section(heading, text), re.M | re.S)
    return [(before.strip(), commands) for before, commands in found]
