"""PKCS#11's numbers and structures, as its standard (version 2.40 and 3.0) writes them; those that a signer needs."""

from __future__ import annotations

import ctypes
import os
from ctypes import c_char, c_ubyte, c_ulong, c_void_p

Handle = c_ulong
UNAVAILABLE = c_ulong(-1).value
"""`CK_UNAVAILABLE_INFORMATION`: the length of an attribute that is not given out."""

FUNCTIONS = (
    *("C_Initialize", "C_Finalize", "C_GetInfo", "C_GetFunctionList", "C_GetSlotList", "C_GetSlotInfo"),
    *("C_GetTokenInfo", "C_GetMechanismList", "C_GetMechanismInfo", "C_InitToken", "C_InitPIN", "C_SetPIN"),
    *("C_OpenSession", "C_CloseSession", "C_CloseAllSessions", "C_GetSessionInfo", "C_GetOperationState"),
    *("C_SetOperationState", "C_Login", "C_Logout", "C_CreateObject", "C_CopyObject", "C_DestroyObject"),
    *("C_GetObjectSize", "C_GetAttributeValue", "C_SetAttributeValue", "C_FindObjectsInit", "C_FindObjects"),
    *("C_FindObjectsFinal", "C_EncryptInit", "C_Encrypt", "C_EncryptUpdate", "C_EncryptFinal", "C_DecryptInit"),
    *("C_Decrypt", "C_DecryptUpdate", "C_DecryptFinal", "C_DigestInit", "C_Digest", "C_DigestUpdate"),
    *("C_DigestKey", "C_DigestFinal", "C_SignInit", "C_Sign"),
)
"""In the order of `CK_FUNCTION_LIST`, up to the last one that is called here."""

OK = 0x00
RESULTS = {
    0x01: "CANCEL",
    0x02: "HOST_MEMORY",
    0x03: "SLOT_ID_INVALID",
    0x05: "GENERAL_ERROR",
    0x06: "FUNCTION_FAILED",
    0x07: "ARGUMENTS_BAD",
    0x0A: "CANT_LOCK",
    0x10: "ATTRIBUTE_READ_ONLY",
    0x11: "ATTRIBUTE_SENSITIVE",
    0x12: "ATTRIBUTE_TYPE_INVALID",
    0x13: "ATTRIBUTE_VALUE_INVALID",
    0x20: "DATA_INVALID",
    0x21: "DATA_LEN_RANGE",
    0x30: "DEVICE_ERROR",
    0x31: "DEVICE_MEMORY",
    0x32: "DEVICE_REMOVED",
    0x50: "FUNCTION_CANCELED",
    0x54: "FUNCTION_NOT_SUPPORTED",
    0x60: "KEY_HANDLE_INVALID",
    0x62: "KEY_SIZE_RANGE",
    0x63: "KEY_TYPE_INCONSISTENT",
    0x68: "KEY_FUNCTION_NOT_PERMITTED",
    0x70: "MECHANISM_INVALID",
    0x71: "MECHANISM_PARAM_INVALID",
    0x82: "OBJECT_HANDLE_INVALID",
    0x90: "OPERATION_ACTIVE",
    0x91: "OPERATION_NOT_INITIALIZED",
    0xA0: "PIN_INCORRECT",
    0xA1: "PIN_INVALID",
    0xA2: "PIN_LEN_RANGE",
    0xA3: "PIN_EXPIRED",
    0xA4: "PIN_LOCKED",
    0xB0: "SESSION_CLOSED",
    0xB1: "SESSION_COUNT",
    0xB3: "SESSION_HANDLE_INVALID",
    0xB5: "SESSION_READ_ONLY",
    0xD0: "TEMPLATE_INCOMPLETE",
    0xD1: "TEMPLATE_INCONSISTENT",
    0xE0: "TOKEN_NOT_PRESENT",
    0xE1: "TOKEN_NOT_RECOGNIZED",
    0xE2: "TOKEN_WRITE_PROTECTED",
    0x100: "USER_ALREADY_LOGGED_IN",
    0x101: "USER_NOT_LOGGED_IN",
    0x102: "USER_PIN_NOT_INITIALIZED",
    0x150: "BUFFER_TOO_SMALL",
    0x190: "CRYPTOKI_NOT_INITIALIZED",
    0x191: "CRYPTOKI_ALREADY_INITIALIZED",
    0x200: "FUNCTION_REJECTED",
}

# Flags: of C_Initialize, of a session, of a token.
OS_LOCKING_OK = 0x02
RW_SESSION, SERIAL_SESSION = 0x02, 0x04
LOGIN_REQUIRED = 0x04
PROTECTED_AUTHENTICATION_PATH = 0x100
TOKEN_INITIALIZED = 0x400
USER_PIN_COUNT_LOW, USER_PIN_FINAL_TRY, USER_PIN_LOCKED = 0x10000, 0x20000, 0x40000

USER, CONTEXT_SPECIFIC = 1, 2

# Attributes.
CLASS, TOKEN, LABEL, VALUE = 0x00, 0x01, 0x03, 0x11
CERTIFICATE_TYPE, ISSUER = 0x80, 0x81
KEY_TYPE, SUBJECT, ID = 0x100, 0x101, 0x102
MODULUS, PUBLIC_EXPONENT = 0x120, 0x122
EC_PARAMS, EC_POINT = 0x180, 0x181
ALWAYS_AUTHENTICATE = 0x202

# Classes of objects, kinds of certificates and keys.
CERTIFICATE, PUBLIC_KEY, PRIVATE_KEY = 1, 2, 3
X_509 = 0
RSA, EC, EC_EDWARDS = 0x00, 0x03, 0x40
KEY_TYPES = {RSA: "RSA", 0x01: "DSA", 0x02: "DH", EC: "EC", EC_EDWARDS: "EC_EDWARDS"}

# Mechanisms; and for PSS the hash and its mask.
RSA_PKCS, RSA_PKCS_PSS, ECDSA, EDDSA = 0x01, 0x0D, 0x1041, 0x1057
PSS_HASHES = {"sha256": (0x250, 2), "sha384": (0x260, 3), "sha512": (0x270, 4)}


class Packed(ctypes.Structure):
    """On Windows the standard packs its structures, elsewhere they are laid out as C does it."""

    if os.name == "nt":
        _pack_ = 1


class FunctionList(Packed):
    _fields_ = (("version", c_ubyte * 2), ("functions", c_void_p * len(FUNCTIONS)))


class InitializeArgs(Packed):
    _fields_ = (("mutex_functions", c_void_p * 4), ("flags", c_ulong), ("reserved", c_void_p))


class Info(Packed):
    _fields_ = (
        ("cryptoki_version", c_ubyte * 2),
        ("manufacturer", c_char * 32),
        ("flags", c_ulong),
        ("description", c_char * 32),
        ("library_version", c_ubyte * 2),
    )


class TokenInfo(Packed):
    _fields_ = (
        ("label", c_char * 32),
        ("manufacturer", c_char * 32),
        ("model", c_char * 16),
        ("serial", c_char * 16),
        ("flags", c_ulong),
        ("counts_and_sizes", c_ulong * 10),
        ("hardware_version", c_ubyte * 2),
        ("firmware_version", c_ubyte * 2),
        ("time", c_char * 16),
    )


class Attribute(Packed):
    _fields_ = (("type", c_ulong), ("value", c_void_p), ("length", c_ulong))


class Mechanism(Packed):
    _fields_ = (("mechanism", c_ulong), ("parameter", c_void_p), ("length", c_ulong))


class PssParameters(Packed):
    _fields_ = (("hash", c_ulong), ("mask", c_ulong), ("salt", c_ulong))
