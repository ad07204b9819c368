// A small agent: streams the answer of its provider, counts its runs in the home, and asks the system for its name.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

async function* deltas(prompt, system) {
    const response = await fetch(`${process.env.ANTHROPIC_BASE_URL}/v1/messages`, {
        method: "POST",
        headers: {
            "content-type": "application/json",
            "x-api-key": process.env.ANTHROPIC_API_KEY,
            "anthropic-version": "2023-06-01",
            "user-agent": "node-agent/1.0",
        },
        body: JSON.stringify({
            model: "small",
            max_tokens: 100,
            stream: true,
            system,
            messages: [{ role: "user", content: prompt }],
        }),
    });
    if (!response.ok) throw new Error(`the provider answered ${response.status}`);
    let text = "";
    for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
        text += piece;
        const events = text.split("\n\n");
        text = events.pop();
        for (const event of events) {
            const data = event.split("\n").find((line) => line.startsWith("data: "));
            const { delta } = JSON.parse(data.slice("data: ".length));
            if (delta?.text) yield delta.text;
        }
    }
}

function countRun() {
    const directory = join(homedir(), ".config", "node-agent");
    const file = join(directory, "state.json");
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    let runs = 0;
    try {
        runs = JSON.parse(readFileSync(file)).runs;
    } catch {}
    writeFileSync(file, JSON.stringify({ runs: runs + 1 }), { mode: 0o600 });
}

const system = `You run on ${execFileSync("uname", ["-s"]).toString().trim()}.`;
for await (const delta of deltas(process.argv[2], system)) process.stdout.write(delta);
process.stdout.write("\n");
countRun();
