"""A small agent: asks its provider one question, keeps the session in the home, prints the answer."""

import json
import os
import sys
import urllib.request
import uuid


def ask(prompt):
    body = {"model": "small", "max_tokens": 100, "messages": [{"role": "user", "content": prompt}]}
    headers = {
        "content-type": "application/json",
        "x-api-key": os.environ["ANTHROPIC_API_KEY"],
        "anthropic-version": "2023-06-01",
    }
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def keep(answer):
    directory = os.path.join(os.environ["HOME"], ".python-agent", "sessions")
    os.makedirs(directory, mode=0o700, exist_ok=True)
    path = os.path.join(directory, f"{uuid.uuid4()}.json")
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
        json.dump(answer, file)


answer = ask(sys.argv[1])
keep(answer)
print("".join(block["text"] for block in answer["content"]))
