"""Asks the stub through the official Python SDK, and prints what the SDK makes of each answer.

Standard input: a JSON list of {"scenario", "mode", "url", "timeout_s"}; all are asked at the same time. Modes:
"raw" iterates the events, "helper" lets the SDK put the message together, "single" asks without a stream.
Standard output: one JSON object a line, {"scenario", "mode", "events", "text", "error"}.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import anthropic
import httpx2

KEY = "sk-stub-0123456789abcdef"
UNLIMITED = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
ASK = {"model": "model-x", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]}


def said(content):
    """What the blocks of a message say, each as one text."""
    texts = []
    for block in content:
        kind = getattr(block, "type", None)
        if kind == "tool_use":
            texts.append(json.dumps(block.input, ensure_ascii=False, sort_keys=True, separators=(",", ":")))
        elif kind == "thinking":
            texts.append(f"{block.thinking} ({block.signature})")
        else:
            texts.append(getattr(block, "text", None) or "")
    return texts


def ask(job, http_client):
    client = anthropic.Anthropic(base_url=job["url"], api_key=KEY, timeout=job["timeout_s"], http_client=http_client)
    found = {"scenario": job["scenario"], "mode": job["mode"], "events": [], "text": [], "error": None}
    try:
        if job["mode"] == "raw":
            for event in client.messages.create(**ASK, stream=True):
                found["events"].append(getattr(event, "type", None))
                delta = getattr(event, "delta", None)
                text = getattr(delta, "text", None)
                if text is not None:
                    found["text"].append(text)
        elif job["mode"] == "helper":
            with client.messages.stream(**ASK) as stream:
                found["text"] = said(stream.get_final_message().content)
        else:
            answer = client.messages.create(**ASK)
            # If the body is not JSON, the SDK returns it unchanged.
            found["text"] = said(answer.content) if hasattr(answer, "content") else ["(no message)"]
    except Exception as error:
        found["error"] = {
            "class": type(error).__name__,
            "status": getattr(error, "status_code", None),
            "type": getattr(error, "type", None),
        }
    return found


def main():
    jobs = json.load(sys.stdin)
    # One client for all jobs: each new one would read the host's certificates again, which takes longer than all answers.
    http_client = anthropic.DefaultHttpxClient(verify=False, trust_env=False, limits=UNLIMITED)
    with ThreadPoolExecutor(max_workers=len(jobs)) as pool:
        for found in pool.map(lambda job: ask(job, http_client), jobs):
            print(json.dumps(found, ensure_ascii=False), flush=True)


main()
