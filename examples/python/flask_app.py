"""A Flask service: every client has 100 requests a minute, and every account 3 reports an hour.

    pip install tidegate flask
    flask --app flask_app run
"""

from flask import Flask, Response, jsonify, request

from tidegate import RateLimited, limited
from tidegate.wsgi import RateLimitMiddleware

app = Flask(__name__)
app.wsgi_app = RateLimitMiddleware(app.wsgi_app, "100/min burst 20")  # type: ignore[method-assign]


@limited("3/h", key=lambda account: account)
def make_report(account: str) -> str:
    return f"a report for {account}"


@app.get("/")
def hello() -> str:
    return "hello"


@app.post("/reports")
def reports() -> str:
    return make_report(request.form["account"])


@app.errorhandler(RateLimited)
def denied(error: RateLimited) -> tuple[Response, int, dict[str, str]]:
    return jsonify(error=str(error)), 429, error.decision.headers()
