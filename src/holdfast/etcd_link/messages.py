"""The message classes of etcd's API, made at import from the table in scripts/etcd/messages.proto.

Generated code would tie us to one span of protobuf versions; a table read by protobuf itself does
not, and takes a millisecond.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

_PACKAGE = "holdfast.etcd"
_MESSAGE = re.compile(r"message (\w+) \{(.*?)\}", re.DOTALL)
_FIELD = re.compile(r"(repeated )?(\w+) (\w+) = (\d+);")
_SCALARS = {
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "string": FieldDescriptorProto.TYPE_STRING,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "uint64": FieldDescriptorProto.TYPE_UINT64,
}


def _read_table(text: str) -> FileDescriptorProto:
    """Return the table as protobuf's own description of a file."""
    file = FileDescriptorProto(name="holdfast/etcd.proto", package=_PACKAGE, syntax="proto3")
    for name, body in _MESSAGE.findall(re.sub(r"//.*", "", text)):
        message = file.message_type.add(name=name)
        for repeated, kind, field_name, number in _FIELD.findall(body):
            field = message.field.add(name=field_name, number=int(number))
            field.label = (
                FieldDescriptorProto.LABEL_REPEATED
                if repeated
                else FieldDescriptorProto.LABEL_OPTIONAL
            )
            if kind in _SCALARS:
                field.type = _SCALARS[kind]
            else:
                field.type = FieldDescriptorProto.TYPE_MESSAGE
                field.type_name = f".{_PACKAGE}.{kind}"
    return file


def _make_classes() -> dict[str, Any]:
    table = files(__package__.rpartition(".")[0]) / "scripts" / "etcd" / "messages.proto"
    file = _read_table(table.read_text("utf-8"))
    pool = DescriptorPool()  # of our own: etcd's names may be registered by another client
    pool.Add(file)
    found = (pool.FindMessageTypeByName(f"{_PACKAGE}.{one.name}") for one in file.message_type)
    return {descriptor.name: GetMessageClass(descriptor) for descriptor in found}


CLASSES: dict[str, Any] = _make_classes()

Compare = CLASSES["Compare"]
DeleteRangeRequest = CLASSES["DeleteRangeRequest"]
PutRequest = CLASSES["PutRequest"]
RangeRequest = CLASSES["RangeRequest"]
RequestOp = CLASSES["RequestOp"]
TxnRequest = CLASSES["TxnRequest"]
LeaseGrantRequest = CLASSES["LeaseGrantRequest"]
LeaseKeepAliveRequest = CLASSES["LeaseKeepAliveRequest"]
LeaseRevokeRequest = CLASSES["LeaseRevokeRequest"]
LeaseTimeToLiveRequest = CLASSES["LeaseTimeToLiveRequest"]
WatchCancelRequest = CLASSES["WatchCancelRequest"]
WatchCreateRequest = CLASSES["WatchCreateRequest"]
WatchRequest = CLASSES["WatchRequest"]
AuthenticateRequest = CLASSES["AuthenticateRequest"]
AlarmRequest = CLASSES["AlarmRequest"]
MemberListRequest = CLASSES["MemberListRequest"]
StatusRequest = CLASSES["StatusRequest"]
