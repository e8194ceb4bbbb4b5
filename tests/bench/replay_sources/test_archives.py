import io
import tarfile
from hashlib import sha256

import pytest

from engine.errors import InputError
from tests.bench.replay_sources.archives import Archive, listed, read_release
from tests.bench.replay_sources.builder import ENDINGS


def _archive(cache, **files):
    folder = cache / "npm" / "@shop+shelf"
    folder.mkdir(parents=True)
    file = folder / "shop-shelf-1.2.0.tgz"
    with tarfile.open(file, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"package/{name}.ts")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return Archive("npm", "@shop/shelf", "1.2.0", sha256(file.read_bytes()).hexdigest())


def test_reads_the_sources_of_an_archive(tmp_path):
    archive = _archive(tmp_path, good=b"let a = 1\n", odd=b"let b\r\n", cut=b"\xff")

    release = read_release(archive, (".ts",), tmp_path)

    assert release.files == {"package/good.ts": "let a = 1\n"}


def test_an_archive_with_another_sum_is_refused(tmp_path):
    archive = _archive(tmp_path, good=b"let a = 1\n")
    other = Archive("npm", archive.name, archive.version, "0" * 64)

    with pytest.raises(InputError, match="SHA-256"):
        read_release(other, (".ts",), tmp_path)


@pytest.mark.parametrize("language", ENDINGS)
def test_no_package_is_in_both_parts(language):
    dev, held = listed("dev", language), listed("held", language)

    assert min(len(dev), len(held)) >= 8
    assert not {one.name for one in dev} & {one.name for one in held}
