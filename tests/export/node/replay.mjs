// Replays golden vectors, or tells what is wrong with inputs: node replay.mjs HEAD REQUEST
import { readFile } from "node:fs/promises";
import * as ort from "onnxruntime-web";

const [, , library, path, request] = process.argv;
const { Head } = await import(library);
ort.env.wasm.numThreads = 1;
const head = await Head.load(new Uint8Array(await readFile(path)), ort);
const { answered, ...scores } = JSON.parse(await readFile(request, "utf8"));
try {
  console.log(JSON.stringify({ outputs: await head.run(scores, answered ?? null) }));
} catch (error) {
  console.log(JSON.stringify({ error: error.message }));
}
