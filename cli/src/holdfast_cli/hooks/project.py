"""The project of a folder: the root of its repository, and a name that its worktrees and clones share."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from holdfast_cli.hooks.git_config import GitConfig, read_small
from holdfast_cli.hooks.location import checksum_key

if TYPE_CHECKING:
    from holdfast import Memory

PROJECT = "HOLDFAST_PROJECT"
"""The environment variable that names the project, whatever the folder is."""

_DEPTH = 128  # folders above that are looked at
_LONGEST = 120  # bytes of a name
# What may not stand in a name, or would read as something else on a line.
_ODD = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
# What no path can have: NUL, and halves of characters that do not stand for a byte.
_IMPOSSIBLE = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://")
_SCP = re.compile(r"(\[[^\]/]{1,100}\]|[^/:@\s\[\]]{2,200}):(?!//)(.*)", re.DOTALL)
_PLACE = re.compile(r"([A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.%]{1,100}\])(?::[0-9]*)?")
# Up to the last `@`, unless it begins a part of a path.
_USER = re.compile(r".*[^/]@", re.DOTALL)
# Other hosts under which the same repositories are reached.
_HOSTS = {
    "ssh.github.com": "github.com",
    "www.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
    "ssh.dev.azure.com": "dev.azure.com",
}
# Hosts whose paths are the same in any case.
_CASELESS = frozenset(("github.com", "gitlab.com", "bitbucket.org", "dev.azure.com"))


class Project(NamedTuple):
    """A project: its name, and the folder that is its root."""

    name: str
    root: Path


def project_of(cwd: str | os.PathLike[str]) -> Project:
    """Return the project of a folder, which need not exist.

    Its root is that of the git repository, or the folder itself. Its name is that of the remote `origin`, or
    of the first one, without scheme, credentials, port and `.git`, so that clones and worktrees are one
    project; without a remote it is the path of the main repository. `HOLDFAST_PROJECT` names it otherwise.
    """
    folder = _real(cwd)
    root, main, config = _repository(folder)
    # A point stands for the folder's own, on the command line.
    if (name := os.environ.get(PROJECT, "").strip()) not in ("", "."):
        return Project(_safe(name), root)
    remote = remote_name(config.remote(), main) if config else ""
    return Project(_safe(remote or str(main)), root)


def main_folder(root: Path) -> Path:
    """Return the folder of the main worktree of a repository, or the folder itself where there is none."""
    return _repository(_real(root))[1]


def _repository(folder: Path) -> tuple[Path, Path, GitConfig | None]:
    """Return the root of a repository, the folder of its main worktree, and its settings.

    Without a repository both are the folder.
    """
    for root in (folder, *folder.parents[:_DEPTH]):
        git = root / ".git"
        if _is(git, stat.S_ISDIR) and _is(git / "HEAD", stat.S_ISREG):
            return root, root, GitConfig(git)
        if _is(git, stat.S_ISREG) and (target := _linked_repository(git)):
            return root, *target
    return folder, folder, None


def _linked_repository(git_file: Path) -> tuple[Path, GitConfig] | None:
    """Return the main folder and the settings that a `.git` file leads to, None if they do not lead back.

    Anyone can write such a file; git itself has both ends know each other.
    """
    text = read_small(git_file)
    if not text.startswith("gitdir:"):
        return None
    folder = _real(git_file.parent / text.removeprefix("gitdir:").strip())
    if common := read_small(folder / "commondir").strip():
        # A worktree.
        back = _real(folder / read_small(folder / "gitdir").strip())
        main = _real(folder / common)
        if back != git_file or folder.parent != main / "worktrees":
            return None
        return main.parent if main.name == ".git" else main, GitConfig(main)
    # A submodule.
    config = GitConfig(folder)
    tree = config.value("core", "worktree")
    return (git_file.parent, config) if tree and _real(folder / tree) == git_file.parent else None


def remote_name(url: str, root: Path) -> str:
    r"""Return the common name for all forms of the URL of a remote; "" for none.

    >>> remote_name("git@github.com:Ada/shop.git", Path("/"))
    'github.com/ada/shop'
    >>> remote_name("https://ada:secret@github.com/ada/shop/", Path("/"))
    'github.com/ada/shop'
    """
    url = url.strip()
    if not url:
        return ""
    if _URL.match(url):
        scheme, _, rest = url.partition("://")
        if scheme.casefold() == "file":
            return _local(rest[rest.find("/") :], root)
        host, path = _host_and_path(rest)
    elif match := _SCP.fullmatch(_USER.sub("", url, count=1) if _USER.match(url) else url):
        host, path = match[1], match[2]
    else:
        return _local(url, root)
    path = re.split(r"[?#]", path, maxsplit=1)[0]
    host = host.strip("[]").rstrip(".").casefold()
    host = _HOSTS.get(host, host)
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    if host == "dev.azure.com":
        parts = [part for part in parts if part.casefold() not in ("_git", "v3")]
    name = "/".join(parts).removesuffix(".git")
    return f"{host}/{name.casefold() if host in _CASELESS else name}" if name else host


def _host_and_path(rest: str) -> tuple[str, str]:
    """Return host and path of a URL without its scheme.

    All before an `@` may be a password, also one with characters that a URL may not have there.
    """
    place, _, path = rest.partition("/")
    match = _PLACE.fullmatch(place)
    if match is None or _USER.match(re.split(r"[?#]", path, maxsplit=1)[0]):
        place, _, path = rest.rpartition("@")[2].partition("/")
        match = _PLACE.fullmatch(place)
    return (match[1] if match else "unknown"), path


def _local(path: str, root: Path) -> str:
    """Return the path of a remote on this machine."""
    full = str(_real(root / path))
    return full.removesuffix("/.git").removesuffix(".git")


def _is(path: Path, sort: Callable[[int], bool]) -> bool:
    """Return whether there is a file of a sort, unlike the methods of paths also where it may not be read."""
    try:
        return sort(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def _real(path: str | os.PathLike[str]) -> Path:
    """Return a path without links; it need not exist, nor be a possible one."""
    return Path(os.path.realpath(_IMPOSSIBLE.sub("", os.fspath(path))))


def _safe(name: str) -> str:
    """Return a name on one line, of bounded length and without credentials; what is cut is told by a hash."""
    # Only the first call of a session names its project.
    from holdfast.port.safety import mask_name

    # A path may have bytes that are not UTF-8.
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    plain = _ODD.sub(lambda odd: "".join(f"%{byte:02X}" for byte in odd[0].encode()), text)
    short = mask_name(plain)
    if short == plain and len(plain.encode()) <= _LONGEST:
        return plain
    mark = blake2b(plain.encode(), digest_size=6).hexdigest()
    if short != plain:
        host = plain.partition("/")[0]
        return f"{host[:40] if mask_name(host) == host != '' else 'project'}/{mark}"
    end = plain.encode()[-(_LONGEST - 16) :].decode(errors="ignore")
    return f"…{end}~{mark}"


def open_memory(project: str, location: str, *, tenant: str = "", user: str = "") -> Memory:
    """Open the memory that the sessions of a project are stored in: the space of that project of the user."""
    from holdfast import Memory

    return Memory(location, tenant=tenant, user=user, project=project, key=checksum_key())
