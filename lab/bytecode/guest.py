"""Appended to sitecustomize.py of a host's Python, which runs whenever that Python starts (site(3))."""


def _remember_bytecode(folder: str) -> None:
    """Keep what zipimport compiles; Python itself forgets it, as it writes no .pyc into an archive.

    Code depends on nothing but the source and the version of Python. The path in it is set when it is read,
    as importlib does (_compile_bytecode in importlib/_bootstrap_external.py). After any error, the source
    is compiled.

    Args:
        folder: where the code is kept, for every Python of every host.
    """
    import _imp
    import marshal
    import os
    import sys
    import zipimport

    compile_source = zipimport._compile_source  # type: ignore[attr-defined]

    def compile_once(path: str, source: bytes) -> object:
        digest = _imp.source_hash(0, source).hex()
        kept = f"{folder}/{sys.implementation.cache_tag}-{len(source)}-{digest}"
        try:
            with open(kept, "rb") as stream:  # noqa: PTH123 -- pathlib would cost more than it saves
                code = marshal.load(stream)  # noqa: S302 -- the bench's own folder
            _imp._fix_co_filename(code, path)  # type: ignore[attr-defined]
            return code
        except (OSError, EOFError, TypeError, ValueError):
            code = compile_source(path, source)
        partial = f"{kept}.{os.urandom(8).hex()}"  # process ids repeat from host to host
        try:
            with open(partial, "wb") as stream:  # noqa: PTH123
                marshal.dump(code, stream)
            os.replace(partial, kept)  # noqa: PTH105
        except OSError:  # someone who may not write there
            pass
        return code

    zipimport._compile_source = compile_once  # type: ignore[attr-defined]
