"""Which `when` entry, override or exemption is meant by a call."""

import ipaddress


def matches(match, subject):
    """The longest address prefix that was matched (0 if none was asked for), or None if
    not all fields match."""
    prefixes = [_field(name, wanted, subject.get(name)) for name, wanted in match.items()]
    return None if None in prefixes else max(prefixes, default=0)


def best(entries, subject):
    """The one entry that applies: most fields, then the longest prefix, then the later; or None."""
    found = []
    for place, entry in enumerate(entries):
        prefix = matches(entry["match"], subject)
        if prefix is not None:
            found.append((len(entry["match"]), prefix, place))
    return entries[max(found)[2]] if found else None


def _field(name, wanted, given):
    if given is None:
        return None
    several = wanted if isinstance(wanted, list) else [wanted]
    found = [_value(name, one, given) for one in several]
    return max((prefix for prefix in found if prefix is not None), default=None)


def _value(name, wanted, given):
    network = _network(wanted) if name == "ip" else None
    if network is None:
        return 0 if _text(wanted) == given else None
    address = _address(given)
    inside = address is not None and address.version == network.version and address in network
    return network.prefixlen if inside else None


def _text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def _network(text):
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None


def _address(text):
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
