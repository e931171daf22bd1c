"""What to do about an error of a store that comes from missing, wrong or expired credentials."""

from __future__ import annotations

import re
import socket

from bpe_beam.storage.names import AZURE
from bpe_beam.storage.retry import CONNECTING, causes_of, status_of

_WAYS = {
    "s3": (
        "give key and secret of s3 (and token, if they are temporary) in {storage_options}, or set "
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN) or AWS_PROFILE; the "
        "option anon reads public buckets"
    ),
    "gs": (
        "give token of gs, the file of a service account, in {storage_options}, or set "
        "GOOGLE_APPLICATION_CREDENTIALS, or run: gcloud auth application-default login"
    ),
    "az": (
        "give connection_string of az, or account_name and account_key or sas_token, in "
        "{storage_options}, or set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME "
        "and AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN"
    ),
    "hf": (
        "give token of hf in {storage_options}, or set HF_TOKEN, or run: hf auth login; access to "
        "a gated dataset is asked for on its page"
    ),
}
_WAYS |= dict.fromkeys(AZURE, _WAYS["az"])

_MISSING_TYPES = {"NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError"}
_REFUSED_TYPES = {"ClientAuthenticationError", "GatedRepoError", "RepositoryNotFoundError"}
_REFUSED_TYPES |= {"PermissionError", "ProfileNotFound", "RefreshError"}
# Compiled on first use, as the patterns of other modules that only errors need.
_MISSING = r"(?i)unable to locate credentials|must provide either a connection_string"
_EXPIRED = r"(?i)expired|token is malformed or otherwise invalid"
_REFUSED = (
    r"(?i)forbidden|unauthorized|access denied|failed to authenticate|signature we calculated|"
    r"access key id|invalid credentials|login fail"
)


def remedy_of(protocol: str, verb: str, error: BaseException) -> str:
    """Return what to do about an error; empty if it does not come from credentials.

    Args:
        protocol: The protocol of the store.
        verb: What was tried; see `error_messages.named_errors`.
        error: The error of the store's client.
    """
    if protocol not in _WAYS:
        return ""
    causes = list(causes_of(error))
    kinds = {kind.__name__ for each in causes for kind in type(each).__mro__}
    text = " ".join(map(str, causes))
    # S3 answers a HEAD with an expired token so, and a HEAD has no text.
    headless = protocol == "s3" and str(error).endswith("Bad Request")
    if _MISSING_TYPES & kinds or re.search(_MISSING, text):
        state = "no credentials were found"
    elif re.search(_EXPIRED, text) or headless:
        state = "the credentials have expired, or the token is wrong"
    elif (
        _REFUSED_TYPES & kinds
        or re.search(_REFUSED, text)
        or not {401, 403}.isdisjoint(map(status_of, causes))
    ):
        state = "the store refuses the credentials, or they lack the right to do this"
        if protocol != "hf":  # the others sign with the time
            state += f", or the clock of {socket.gethostname()} is wrong"
    elif verb == CONNECTING and protocol != "s3":  # the clients read credentials when they connect
        state = "the credentials may be unusable"
    else:
        return ""
    return f"{state}: {_WAYS[protocol]}"
