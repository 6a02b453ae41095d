"""How the site is built: `make docs`."""

import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from plainrisk import __version__  # noqa: E402
from plainrisk.errors import PlainriskWarning  # noqa: E402

project = "plainrisk"
version = release = __version__
copyright = "the plainrisk developers, BSD-3-Clause"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    # Ours, in _ext.
    "code_tables",
    "command_pages",
    "decision_page",
    "plain_math",
    "root_pages",
    "short_text",
]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.zip", "results/report.html"]
templates_path = ["_templates"]

# ---- text
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 3
myst_dmath_allow_space = False
myst_dmath_allow_digits = False
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_output_stderr = "remove"  # warnings name folders of the machine that builds the site
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
html_math_renderer = "mathml"

# ---- reference
autosummary_generate = True
autosummary_imported_members = False
autodoc_typehints = "none"
autodoc_member_order = "alphabetical"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# ---- gallery
warnings.filterwarnings("ignore", category=PlainriskWarning)
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "capture_repr": (),
    "matplotlib_animations": False,
    "within_subsection_order": "FileNameSortKey",
    "reset_modules": ("gallery_style.reset",),
}

# ---- pages
html_theme = "pydata_sphinx_theme"
html_title = "plainrisk"
html_static_path = ["_static", "images"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": []}
html_theme_options = {
    "logo": {"text": "plainrisk"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def ours_alone(app, what, name, member, skip, options):
    """Leave out what a class inherits from scikit-learn, which documents it."""
    module = str(getattr(member, "__module__", "") or "")
    return True if module.startswith(("sklearn", "msgspec")) else skip


def setup(app):
    """Register what belongs to no extension."""
    app.connect("autodoc-skip-member", ours_alone)
