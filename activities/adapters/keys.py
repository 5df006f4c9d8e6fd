"""Keys of encrypted segments: which one is taken, and what AES-128 makes of a segment."""

from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from activities.ports import SourceFault, SourceRefused

KEY_BYTES = 16
_BLOCK_BYTES = 16
_PROTECTIONS = {
    "com.apple.streamingkeydelivery": "FairPlay",
    "com.microsoft.playready": "PlayReady",
    "urn:uuid:9a04f079-9840-4286-ab92-e65be0885f95": "PlayReady",
    "com.widevine": "Widevine",
    "urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed": "Widevine",
}


def choose_key(keys: list[dict[str, Any]], sequence: int) -> tuple[str, str] | None:
    """Address and initialisation vector (32 hexadecimal digits) of the key to use; None for a plain segment.

    Raises SourceRefused with the name of the protection where no key of the list can be used.
    """
    if not keys:
        return None
    usable = [key for key in keys if _is_usable(key)]
    if not usable:
        raise SourceRefused(f"This stream is protected ({protection(keys[0])}); protected streams cannot be recorded.")
    return usable[0]["uri"], _vector(usable[0].get("iv"), sequence)


def protection(key: dict[str, Any]) -> str:
    """The name of a protection: the DRM system where it is known, else method and key format."""
    keyformat, method = key.get("keyformat", "identity").lower(), key.get("method") or "no method"
    name = _PROTECTIONS.get(keyformat)
    if name:
        return f"{name}, {method}"
    return method if keyformat == "identity" else f"{method}, {keyformat[:60]}"


def _is_usable(key: dict[str, Any]) -> bool:
    identity = key.get("keyformat", "identity").lower() == "identity"
    return identity and key.get("method", "").upper() == "AES-128" and bool(key.get("uri"))


def _vector(text: str | None, sequence: int) -> str:
    """Without one of its own, a segment's vector is its media sequence number."""
    if text is None:
        return f"{sequence:032x}"
    try:
        value = int(text, 16)
    except ValueError:
        value = -1
    if not 0 <= value < 1 << 128:
        raise SourceRefused(f"The initialisation vector {text[:40]!r} is no number of 128 bits.")
    return f"{value:032x}"


def decrypt(data: bytes, key: bytes, vector: str) -> bytes:
    """AES-128 in CBC mode with PKCS#7 padding. Raises SourceRefused for a key of another length, SourceFault."""
    if len(key) != KEY_BYTES:
        raise SourceRefused(f"The key has {len(key)} bytes; AES-128 takes {KEY_BYTES}.")
    if not data or len(data) % _BLOCK_BYTES:
        raise SourceFault(f"An encrypted segment of {len(data)} bytes is incomplete.")
    cipher = Cipher(algorithms.AES(key), modes.CBC(bytes.fromhex(vector))).decryptor()
    padded = cipher.update(data) + cipher.finalize()
    remover = PKCS7(_BLOCK_BYTES * 8).unpadder()
    try:
        return remover.update(padded) + remover.finalize()
    except ValueError as error:
        raise SourceFault("A segment could not be decrypted with the key that the playlist names.") from error
