"""An interpreter that finds some installed packages only, as on a machine that has no others."""

import sys
from collections.abc import Iterable, Iterator, Sequence, Set
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder, PackageNotFoundError, distribution
from importlib.metadata import distributions as installed
from types import ModuleType

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def with_dependencies(names: Iterable[str]) -> set[str]:
    """Distributions of these names and whatever they require that is installed, extras aside."""
    found, waiting = set[str](), list[str](map(canonicalize_name, names))
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += _required_by(name)
    return found


def _required_by(name: str) -> Iterator[str]:
    try:
        requirements = distribution(name).requires or []
    except PackageNotFoundError:  # of another system, or the device's own
        return
    for requirement in map(Requirement, requirements):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield canonicalize_name(requirement.name)


class FewPackages:
    """Finds modules as `PathFinder` does, of installed packages only those of some distributions.

    The standard library and the project itself are found as ever.
    """

    def __init__(self, names: Set[str]) -> None:
        """Read once which modules are whose, and where packages are installed."""
        every = dict[str, Distribution]((canonicalize_name(one.name), one) for one in installed())
        self.distributions = names
        self.folders = {str(one.locate_file("")) for one in every.values()}
        self.modules = {
            file.parts[0].split(".")[0]
            for name in names & every.keys()
            for file in every[name].files or ()
        }

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As the interpreter asks for it; below a package that was found, anything is."""
        if path is None and name not in self.modules:
            path = [folder for folder in sys.path if folder not in self.folders]
        return PathFinder.find_spec(name, path, target)

    def find_distributions(self, context: DistributionFinder.Context) -> Iterator[Distribution]:
        """What is not found is not installed, so no entry point names it either."""
        for one in PathFinder.find_distributions(context):
            if canonicalize_name(one.name) in self.distributions:
                yield one


def find_only(names: Set[str]) -> None:
    """From now on this interpreter finds the distributions of these names alone."""
    sys.meta_path[sys.meta_path.index(PathFinder)] = FewPackages(names)
