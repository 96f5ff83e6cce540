"""Users, bills and policies of a small subscription service: the reference system for policy boundaries."""

import re

_USERS = {
    42: {"name": "Anna", "country": "US", "plan": "pro"},
    7: {"name": "Max", "country": "US", "plan": "free"},
}
_BILLING = {
    42: {"plan": "pro_monthly", "price": "49.00 USD", "days_since_first_payment": 10},
    7: {"plan": "free", "price": "0.00 USD", "days_since_first_payment": 120},
}
_POLICIES = {
    "refund-v3": "Pro monthly: refundable within 14 days of the first payment.",
    "free-v1": "Free plan: there are no billable payments, so nothing can be refunded.",
    "billing-v2": "Refunds go back to the original payment method, in USD.",
}


def get_user_profile(user_id: int) -> dict[str, object]:
    """Name, country and plan of a user."""
    return {"user_id": user_id, **_USERS[user_id]} if user_id in _USERS else {"error": f"no user {user_id}"}


def get_user_billing(user_id: int) -> dict[str, object]:
    """Billed plan, price, and days since the first payment of a user."""
    return {"user_id": user_id, **_BILLING[user_id]} if user_id in _BILLING else {"error": f"no user {user_id}"}


def search_policy(query: str) -> str:
    """The two policy documents that share most words with the query, one per line."""
    words = _words(query)
    shared = {name: len(words & _words(f"{name} {text}")) for name, text in _POLICIES.items()}
    best = sorted((name for name in shared if shared[name]), key=lambda name: -shared[name])[:2]
    return "\n".join(f"{name}: {_POLICIES[name]}" for name in best or list(_POLICIES)[:1])


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))
