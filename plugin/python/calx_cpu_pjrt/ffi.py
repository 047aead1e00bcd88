"""PJRT's FFI extension of the engine, and the call frames of XLA's FFI.

The layouts are those of xla/ffi/api/c_api.h and pjrt_c_api_ffi_extension.h
(openxla/xla), which src/abi of calx declares for C.
"""

import ctypes
import traceback

_VERSION = (0, 3)
_FFI_EXTENSION = 5  # PJRT_Extension_Type_FFI
_METADATA = 1  # XLA_FFI_Extension_Metadata


class Extension(ctypes.Structure):
    pass


Extension._fields_ = [
    ("struct_size", ctypes.c_size_t),
    ("type", ctypes.c_int),
    ("next", ctypes.POINTER(Extension)),
]

_HEAD = [
    ("struct_size", ctypes.c_size_t),
    ("extension_start", ctypes.POINTER(Extension)),
]


class Buffer(ctypes.Structure):
    _fields_ = _HEAD + [
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
    ]


class Buffers(ctypes.Structure):  # XLA_FFI_Args, XLA_FFI_Rets
    _fields_ = _HEAD + [
        ("size", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("items", ctypes.POINTER(ctypes.POINTER(Buffer))),
    ]


class Span(ctypes.Structure):
    _fields_ = [("ptr", ctypes.c_void_p), ("len", ctypes.c_size_t)]


class Scalar(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("value", ctypes.c_void_p)]


class Attrs(ctypes.Structure):
    _fields_ = _HEAD + [
        ("size", ctypes.c_int64),
        ("types", ctypes.POINTER(ctypes.c_int)),
        ("names", ctypes.POINTER(ctypes.POINTER(Span))),
        ("attrs", ctypes.POINTER(ctypes.c_void_p)),
    ]


class ApiVersion(ctypes.Structure):
    _fields_ = _HEAD + [("major", ctypes.c_int), ("minor", ctypes.c_int)]


class ErrorCreateArgs(ctypes.Structure):
    _fields_ = _HEAD + [("message", ctypes.c_char_p), ("errc", ctypes.c_int)]


_ErrorCreate = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.POINTER(ErrorCreateArgs))


class Api(ctypes.Structure):  # as far as the first function
    _fields_ = _HEAD + [
        ("version", ApiVersion),
        ("internal", ctypes.c_void_p),
        ("error_create", _ErrorCreate),
    ]


class CallFrame(ctypes.Structure):
    _fields_ = _HEAD + [
        ("api", ctypes.POINTER(Api)),
        ("ctx", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("args", Buffers),
        ("rets", Buffers),
        ("attrs", Attrs),
        ("future", ctypes.c_void_p),
    ]


class _Metadata(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("version", ApiVersion),
        ("traits", ctypes.c_uint32),
        ("state_type_id", ctypes.c_int64),
    ]


class _MetadataExtension(ctypes.Structure):
    _fields_ = [("base", Extension), ("metadata", ctypes.POINTER(_Metadata))]


_Handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(CallFrame))


def scalar(frame, name, c_type):
    """A scalar attribute of the call."""
    attrs = frame.attrs
    for i in range(attrs.size):
        span = attrs.names[i].contents
        if ctypes.string_at(span.ptr, span.len) == name:
            value = ctypes.cast(attrs.attrs[i], ctypes.POINTER(Scalar))
            return ctypes.cast(
                value.contents.value, ctypes.POINTER(c_type)).contents.value
    raise KeyError(name)


def _answer_metadata(frame):
    """Tells the version, if that is what the frame asks for."""
    extension = frame.extension_start
    if not extension or extension.contents.type != _METADATA:
        return False
    asked = ctypes.cast(extension, ctypes.POINTER(_MetadataExtension))
    version = asked.contents.metadata.contents.version
    version.major, version.minor = _VERSION
    return True


def handler(function):
    """A handler that calls function(frame); an exception is its error."""

    def run(pointer):
        frame = pointer.contents
        try:
            if not _answer_metadata(frame):
                function(frame)
            return None
        except BaseException as error:  # must not pass through C
            text = "".join(traceback.format_exception(error)).strip().encode()
            args = ErrorCreateArgs(
                struct_size=28, message=text, errc=13)  # INTERNAL
            return frame.api.contents.error_create(ctypes.byref(args))

    return _Handler(run)


# ---- registering ----


class _RegisterArgs(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("name_size", ctypes.c_size_t),
        ("handler", ctypes.c_void_p),
        ("platform", ctypes.c_char_p),
        ("platform_size", ctypes.c_size_t),
        ("traits", ctypes.c_uint32),
    ]


class _FfiExtension(ctypes.Structure):
    _fields_ = [
        ("base", Extension),
        ("type_register", ctypes.c_void_p),
        ("user_data_add", ctypes.c_void_p),
        ("register_handler", ctypes.CFUNCTYPE(
            ctypes.c_void_p, ctypes.POINTER(_RegisterArgs))),
    ]


class _PjrtApi(ctypes.Structure):
    _fields_ = _HEAD


def _capsule_pointer(capsule):
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))


class Library:
    """The engine's library, for its FFI extension."""

    def __init__(self, path):
        get = ctypes.CDLL(path).GetPjrtApi
        get.restype = ctypes.POINTER(_PjrtApi)
        extension = get().contents.extension_start
        while extension and extension.contents.type != _FFI_EXTENSION:
            extension = extension.contents.next
        if not extension:
            raise ImportError(f"{path} has no FFI extension")
        self._ffi = ctypes.cast(extension, ctypes.POINTER(_FfiExtension))
        self._kept = []

    def register_pointer(self, name, pointer):
        text = name.encode()
        args = _RegisterArgs(
            struct_size=52, name=text, name_size=len(text), handler=pointer)
        if self._ffi.contents.register_handler(ctypes.byref(args)):
            raise RuntimeError(f"the engine refused the target {name}")

    def register_function(self, name, function):
        """A Python function of the call frame."""
        made = handler(function)
        self._kept.append(made)
        self.register_pointer(name, ctypes.cast(made, ctypes.c_void_p).value)

    def register(self, name, function):
        """A capsule, or a dictionary of capsules by their stage.

        The engine keeps no state of a handler, so one that has an instantiate
        stage is left out: a program that calls it is refused by its name.
        """
        stages = function if isinstance(function, dict) else {
            "execute": function}
        if set(stages) != {"execute"}:
            return
        self.register_pointer(name, _capsule_pointer(stages["execute"]))
