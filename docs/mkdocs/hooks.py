"""Build the site from the guides, the front page, and all files of the repository that these link to."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
TARGET = re.compile(r'(?:(?<=\]\()|(?<=src="))(?!https?:)[^)"#\s]+')  # of a link in Markdown, or of an image in HTML


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the front page, and what the pages link to outside of docs/, such as a script or a picture."""
    pages = ["README.md", *(f"docs/{file.src_uri}" for file in files.documentation_pages())]
    found = {*pages}
    for page in pages:
        if not page.startswith("docs/"):
            files.append(File.generated(config, place_in_site(page), abs_src_path=str(ROOT / page)))
        if page.endswith(".md"):
            targets = {resolve(target, page) for target in TARGET.findall((ROOT / page).read_text(encoding="utf-8"))}
            # what does not exist stays out, so that mkdocs complains about the link
            new = sorted(target for target in targets - found if (ROOT / target).is_file())
            pages += new
            found.update(new)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links of the repository become links of the site."""
    here = page.file.src_uri
    source = "README.md" if here == "index.md" else f"docs/{here}" if (ROOT / "docs" / here).exists() else here
    folder = posixpath.dirname(here)
    return TARGET.sub(lambda link: posixpath.relpath(place_in_site(resolve(link[0], source)), folder or "."), markdown)


def resolve(target: str, page: str) -> str:
    """The path in the repository of what a page links to; of a folder, its page."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
    return posixpath.join(path, "index.html") if target.endswith("/") else path


def place_in_site(path: str) -> str:
    """Where the site has a file of the repository."""
    return "index.md" if path == "README.md" else path.removeprefix("docs/")
