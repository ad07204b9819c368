// Asks the stub through the official TypeScript SDK, and prints what the SDK makes of each answer.
//
// The argument is the directory with the SDK. Standard input and output have the format that client.py
// describes.

import { createRequire } from 'node:module';
import { text } from 'node:stream/consumers';

const { Anthropic } = createRequire(`${process.argv[2]}/`)('@anthropic-ai/sdk');

const KEY = 'sk-stub-0123456789abcdef';
const ASK = { model: 'model-x', max_tokens: 64, messages: [{ role: 'user', content: 'hi' }] };

/** JSON with its keys in order, as client.py writes it. */
function sorted(value) {
  const order = (_, item) =>
    item && typeof item === 'object' && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([one], [other]) => (one < other ? -1 : 1)))
      : item;
  return JSON.stringify(value, order);
}

/** What the blocks of a message say, each as one text. */
function said(content) {
  return content.map((block) => {
    if (block.type === 'tool_use') return sorted(block.input);
    if (block.type === 'thinking') return `${block.thinking} (${block.signature})`;
    return block.text ?? '';
  });
}

async function ask(job) {
  const client = new Anthropic({
    baseURL: job.url,
    apiKey: KEY,
    timeout: job.timeout_s * 1000,
    logLevel: 'off',
  });
  // The SDK's time-out ends with the head of an answer, so a stream needs its own abort.
  const controller = new AbortController();
  const stalls = job.scenario === 'stall-mid-stream';
  const options = { signal: controller.signal };
  const found = { scenario: job.scenario, mode: job.mode, events: [], text: [], error: null };
  try {
    if (job.mode === 'raw') {
      for await (const event of await client.messages.create({ ...ASK, stream: true }, options)) {
        found.events.push(event.type ?? null);
        if (typeof event.delta?.text === 'string') found.text.push(event.delta.text);
        if (stalls && event.type === 'content_block_delta') controller.abort();
      }
    } else if (job.mode === 'helper') {
      const stream = client.messages.stream(ASK, options);
      if (stalls) stream.on('text', () => controller.abort());
      found.text = said((await stream.finalMessage()).content);
    } else {
      const answer = await client.messages.create(ASK);
      // If the body is not JSON, the SDK returns it unchanged.
      found.text = answer?.content ? said(answer.content) : ['(no message)'];
    }
  } catch (error) {
    found.error = {
      class: error.constructor.name,
      status: error.status ?? null,
      type: error.type ?? null,
    };
  }
  return found;
}

const jobs = JSON.parse(await text(process.stdin));
for (const found of await Promise.all(jobs.map(ask))) console.log(JSON.stringify(found));
