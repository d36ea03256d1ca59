"""SoftHSM2's module with one function replaced by a few instructions: tokens that lock, vanish, crash or hang."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from tests.integration.softhsm import MODULE

PIN_LOCKED, DEVICE_REMOVED = 0xA4, 0x32
FUNCTION_FAILED, FUNCTION_REJECTED, MECHANISM_INVALID = 0x06, 0x200, 0x70
_CODE = {
    "x86_64": {"crash": b"\x0f\x0b", "hang": b"\xeb\xfe"},
    "aarch64": {"crash": b"\x00\x00\x20\xd4", "hang": b"\x00\x00\x00\x14"},
}


def module_that(folder: Path, function: str, does: str | int) -> str:
    """The path of a module whose `function` does `crash` or `hang`, or returns a number."""
    machine = os.uname().machine
    if machine not in _CODE:
        pytest.skip(f"no instructions are known for {machine}")
    if isinstance(does, str):
        code = _CODE[machine][does]
    elif machine == "x86_64":
        code = b"\xb8" + struct.pack("<I", does) + b"\xc3"  # mov eax, NUMBER; ret
    else:
        code = struct.pack("<II", 0x52800000 | does << 5, 0xD65F03C0)  # mov w0, #NUMBER; ret
    content = bytearray(Path(MODULE).read_bytes())
    place = _offset(bytes(content), function)
    content[place : place + len(code)] = code
    path = folder / f"{function}-{does}.so"
    path.write_bytes(content)
    return str(path)


def _offset(elf: bytes, name: str) -> int:
    """Where in the file the code of an exported function begins."""
    (segments, sections) = struct.unpack_from("<QQ", elf, 32)
    segment_size, segment_count, section_size, section_count = struct.unpack_from("<HHHH", elf, 54)
    headers = [
        struct.unpack_from("<IIQQQQIIQQ", elf, sections + index * section_size) for index in range(section_count)
    ]
    symbols = next(header for header in headers if header[1] == 11)  # SHT_DYNSYM
    names = headers[symbols[6]][4]
    for at in range(symbols[4], symbols[4] + symbols[5], 24):
        text, _, _, _, address, _ = struct.unpack_from("<IBBHQQ", elf, at)
        if elf[names + text :].split(b"\0", 1)[0] == name.encode() and address:
            for index in range(segment_count):
                kind, _, offset, start, _, size = struct.unpack_from("<IIQQQQ", elf, segments + index * segment_size)
                if kind == 1 and start <= address < start + size:  # PT_LOAD
                    return int(offset + address - start)
    raise AssertionError(f"{MODULE} exports no {name}")
