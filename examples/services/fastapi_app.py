"""A FastAPI service whose users come with the tokens of an AuthenticationConfiguration file.

AUTHN_CONFIG=authn.yaml granian --interface asgi fastapi_app:app
curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8000/me
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, WebSocket
from starlette.authentication import requires

from kubeauthn.server.asgi import AuthenticationMiddleware

app = FastAPI()
app.add_middleware(AuthenticationMiddleware, config=Path(os.environ["AUTHN_CONFIG"]))


@app.get("/me")
async def me(request: Request) -> dict[str, Any]:
    user = request.user
    return {"name": user.username, "groups": user.groups}


@app.get("/admin")
@requires("group:admins", status_code=403)
async def admin(request: Request) -> dict[str, str]:
    return {"hello": request.user.username}


@app.get("/healthz")
async def health(request: Request) -> dict[str, str]:
    """Without a token, if the file says `anonymous: {enabled: true, conditions: [{path: /healthz}]}`."""
    return {"asked by": request.user.username}


@app.websocket("/updates")
async def updates(websocket: WebSocket) -> None:
    await websocket.accept(subprotocol=next(iter(websocket.scope["subprotocols"]), None))
    await websocket.send_json({"hello": websocket.user.username})
    async for text in websocket.iter_text():
        await websocket.send_text(f"{websocket.user.username}: {text}")
