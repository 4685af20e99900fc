#!/usr/bin/env python3
"""Reads traces with Perfetto's own message definitions and says what is in them.

Needs the PyPI packages `perfetto` (for its generated message classes only: nothing is downloaded or started) and `protobuf`.
Fails on unknown fields, names that were not interned, tracks that were not described, slices that do not begin and end in turn.

    scripts/check-trace.py out/trace/*.pftrace
"""

import json
import sys

from google.protobuf import unknown_fields
from google.protobuf.message import Message
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema


def check_known(message, where):
    if len(unknown_fields.UnknownFieldSet(message)):
        raise SystemExit(f"{where}: a field that Perfetto does not know, in {message.DESCRIPTOR.name}")
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in [value] if isinstance(value, Message) else value:
                check_known(inner, where)


def check(path):
    trace = schema.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    event = schema.TrackEvent
    names, categories, arguments, tracks = {}, {}, {}, {}
    open_slices, slices, counters, before = {}, 0, 0, 0
    kinds = {}
    for number, packet in enumerate(trace.packet):
        where = f"{path}, packet {number}"
        check_known(packet, where)
        for table, entries in ((names, packet.interned_data.event_names), (categories, packet.interned_data.event_categories),
                               (arguments, packet.interned_data.debug_annotation_names)):
            table.update((entry.iid, entry.name) for entry in entries)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert not track.HasField("parent_uuid") or track.parent_uuid in tracks, where
            tracks[track.uuid] = track
        if not packet.HasField("track_event"):
            continue
        e = packet.track_event
        assert e.track_uuid in tracks and packet.timestamp >= before, where
        before = packet.timestamp
        assert all(a.name_iid in arguments for a in e.debug_annotations), where
        if e.type == event.TYPE_SLICE_BEGIN:
            assert names[e.name_iid] and open_slices.setdefault(e.track_uuid, number) == number, where
            kind = categories[e.category_iids[0]]
            kinds[kind] = kinds.get(kind, 0) + 1
        elif e.type == event.TYPE_SLICE_END:
            open_slices.pop(e.track_uuid)
            slices += 1
        elif e.type == event.TYPE_COUNTER:
            assert tracks[e.track_uuid].HasField("counter"), where
            counters += 1
        else:
            assert e.type == event.TYPE_INSTANT and names[e.name_iid], where
    assert not open_slices, path
    return {"trace": path, "tracks": len(tracks), "slices": slices, "samples": counters, "end_ns": before, "by_category": kinds}


for argument in sys.argv[1:] or sys.exit(__doc__):
    print(json.dumps(check(argument)))
