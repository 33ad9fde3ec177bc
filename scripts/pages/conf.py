"""Settings of Sphinx for `make docs-site`."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

project = "gpufarm.cluster"
html_title = project
html_theme = "furo"
html_show_copyright = False
html_static_path = ["node_modules/@mermaid-js/tiny/dist"]
extensions = ["myst_parser", "sphinx_antsibull_ext"]
exclude_patterns = [".*", "scripts"]
# Pages are written for a forge: links lead to headings of other pages, and diagrams are blocks of code.
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]

# Targets in Ansible's own documentation of references in pages of antsibull-docs.
ANSIBLE = "https://docs.ansible.com/projects/ansible/latest/"
PAGES = {
    "ANSIBLE_INVENTORY_ENABLED": "reference_appendices/config.html#envvar-ANSIBLE_INVENTORY_ENABLED",
    "ansible_collections.ansible.builtin.slurp_module": "collections/ansible/builtin/slurp_module.html",
    "ansible_configuration_settings": "reference_appendices/config.html",
    "common_return_values": "reference_appendices/common_return_values.html",
}


class Diagram(SphinxDirective):
    """A diagram of Mermaid, which the reader's browser draws without asking another server."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the text of the diagram, and the script that replaces it by a picture."""
        top = "../" * self.env.docname.count("/")
        text = escape("\n".join(self.content))
        picture = f'<pre class="mermaid" style="background: white">{text}</pre>'
        script = f'<script defer src="{top}_static/mermaid.tiny.js"></script>'
        return [nodes.raw("", picture + script, format="html")]


def in_ansible(_app: Any, _environment: Any, node: Any, text: nodes.Node) -> nodes.Node | None:
    """Return the link of a reference to Ansible's documentation; nothing for any other."""
    page = PAGES.get(node["reftarget"])
    return nodes.reference("", "", text, refuri=ANSIBLE + page) if page else None


def without_contents(_app: Any, page: nodes.document) -> None:
    """Remove the lists of sections that antsibull-docs writes, which the theme has at the side of a page."""
    for topic in list(page.findall(nodes.topic)):
        topic.parent.remove(topic)


def setup(app: Any) -> None:
    """Register what this file adds to Sphinx."""
    app.add_directive("mermaid", Diagram)
    app.connect("missing-reference", in_ansible)
    app.connect("doctree-read", without_contents)
