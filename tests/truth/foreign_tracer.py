# SPDX-License-Identifier: Apache-2.0
"""What the ids of foreign_tracer.h say."""

MASK = (1 << 64) - 1


def checksum(trace):
    """foreign_checksum of foreign_tracer.h."""
    first, second = (int.from_bytes(trace[at : at + 8], "little") for at in (0, 8))
    x = (first * 0x9E3779B97F4A7C15 & MASK) ^ second
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93 & MASK
    return (x ^ x >> 32) | 1


def work(trace_id, span_id):
    """The work that a span of that tracer says it does; None when it is none of its spans, or torn. Ids in hexadecimal digits."""
    trace, span = bytes.fromhex(trace_id), bytes.fromhex(span_id)
    is_whole = trace[0] == 0xF0 and int.from_bytes(span, "little") == checksum(trace)
    return str(trace[1]) if is_whole else None
