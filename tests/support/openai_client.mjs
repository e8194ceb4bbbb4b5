// What users of npm's `openai` package write, against the host of OPENAI_BASE_URL.
// node openai_client.mjs FOLDER: the folder with node_modules. Prints what came, as JSON.
import { createRequire } from "node:module";

const { OpenAI } = createRequire(`${process.argv[2]}/`)("openai");
const client = new OpenAI({ maxRetries: 0 });
const asked = { model: "any", prompt: "def f():\n", max_tokens: 30 };

const failure = async (run) => {
    try {
        await run();
        return "none";
    } catch (error) {
        return `${error.constructor.name} ${error.status} ${error.message}`;
    }
};

const models = [];
for await (const model of client.models.list()) models.push(model.id);
const whole = await client.completions.create(asked);
const hole = await client.completions.create({ ...asked, suffix: "\nprint(f())\n", logprobs: 1 });
const stream = await client.completions.create({
    ...asked,
    stream: true,
    stream_options: { include_usage: true },
});
const chunks = [];
for await (const chunk of stream) chunks.push(chunk);
const messages = [
    { role: "system", content: "Be brief." },
    { role: "user", content: "x = " },
];
const chat = { model: "any", messages, max_tokens: 30 };
const answer = await client.chat.completions.create(chat);
const answering = await client.chat.completions.create({ ...chat, stream: true });
const deltas = [];
for await (const chunk of answering) deltas.push(chunk.choices[0].delta.content ?? "");
const left = await client.completions.create({ ...asked, max_tokens: 1000, stream: true });
for await (const _ of left) break;
const stranger = new OpenAI({ maxRetries: 0, apiKey: "another" });
process.stdout.write(
    JSON.stringify({
        models,
        whole,
        hole,
        answered: answer.choices[0].message.content,
        deltas: deltas.join(""),
        streamed: chunks.map((chunk) => chunk.choices[0]?.text ?? "").join(""),
        usage: chunks.at(-1).usage,
        refused: await failure(() => client.completions.create({ ...asked, echo: true })),
        unknown: await failure(() => stranger.models.list()),
    }),
);
