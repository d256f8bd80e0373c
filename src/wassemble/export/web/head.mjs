// A head in JavaScript: Node and browsers, on onnxruntime-web or onnxruntime-node.
//
// import * as ort from "onnxruntime-web";
// const head = await Head.load(bytes, ort);
// const { scores, label } = await head.run({ a: [[0.9, 0.1]], b: [[0.6, 0.4]] });
//
// What goes in is checked as in Python, in the words that the file carries.

const KEY = "wassemble";
const FORMAT = "wassemble head 1";
const ANSWERED = "answered";

export class Head {
  // `bytes` is the file as a Uint8Array, `ort` the runtime.
  static async load(bytes, ort) {
    const about = readAbout(bytes);
    if (about?.format !== FORMAT) {
      throw new Error(`the file must be a head that \`wassemble export\` wrote, format '${FORMAT}'.`);
    }
    const session = await ort.InferenceSession.create(bytes, { executionProviders: executors(ort) });
    return new Head(session, about, ort);
  }

  constructor(session, about, ort) {
    this.session = session;
    this.about = about;
    this.ort = ort;
  }

  // Scores are rows of numbers by model, null or NaN for what was not reported; `answered` has a
  // row for each sample, with 1 for each model that answered and 0 for the others.
  async run(scores, answered = null) {
    const { tables, mask } = this.read(scores, answered);
    const feeds = {};
    for (const [name, rows] of Object.entries(tables)) feeds[name] = this.tensor(rows);
    if (this.about.abstentions) feeds[ANSWERED] = this.tensor(mask);
    const found = await this.session.run(feeds);
    const outputs = {};
    for (const [name, tensor] of Object.entries(found)) outputs[name] = unpack(tensor);
    return outputs;
  }

  read(scores, answered) {
    // Not the keys of `models`: JavaScript puts those that look like numbers first.
    const names = this.session.inputNames.filter((name) => name !== ANSWERED);
    for (const name of Object.keys(scores)) {
      if (!names.includes(name) && !this.about.unused.includes(name)) {
        this.refuse("strange", { models: listed(names), model: quoted(name) });
      }
    }
    const tables = {};
    for (const name of names) tables[name] = this.readTable(name, names, scores);
    const nSamples = tables[names[0]].length;
    for (const name of names) {
      if (tables[name].length !== nSamples) {
        const both = { first: quoted(names[0]), n_first: nSamples };
        this.refuse("samples", { ...both, model: quoted(name), n_samples: tables[name].length });
      }
    }
    const mask = this.readAnswered(answered, nSamples, names.length);
    names.forEach((name, place) => this.checkScores(name, tables[name], mask, place));
    return { tables, mask };
  }

  readTable(name, names, scores) {
    if (!Object.hasOwn(scores, name)) this.refuse("missing", { models: listed(names), model: quoted(name) });
    const rows = scores[name];
    const nLabels = this.about.models[name].length;
    const shape = shapeOf(rows);
    if (!shape) this.refuse("type", { model: quoted(name) });
    if (shape.length !== 2 || shape[1] !== nLabels) {
      const got = `(${shape.join(", ")})`;
      this.refuse("shape", { model: quoted(name), n_labels: nLabels, shape: got });
    }
    // What is too large for the type is infinite, which is told.
    const round = this.about.dtype === "float64" ? Number : Math.fround;
    return numbersOf(rows, round);
  }

  readAnswered(answered, nSamples, nModels) {
    if (answered === null) return Array.from({ length: nSamples }, () => Array(nModels).fill(1));
    const isMask = String(shapeOf(answered)) === String([nSamples, nModels]);
    const mask = isMask ? numbersOf(answered) : [];
    const isSaid = mask.flat().every((each) => each === 0 || each === 1);
    if (!isMask || !isSaid || (!this.about.abstentions && mask.flat().includes(0))) {
      this.refuse("answered", { n_models: nModels });
    }
    return mask;
  }

  checkScores(name, rows, mask, place) {
    const wrong = { infinite: (x) => Math.abs(x) === Infinity, negative: (x) => x < 0 };
    const checks = this.about.gaps ? wrong : { nan: Number.isNaN, ...wrong };
    for (const [what, isWrong] of Object.entries(checks)) {
      rows.forEach((row, sample) => {
        const label = row.findIndex(isWrong);
        if (mask[sample][place] && label >= 0) {
          const at = { sample, label: quoted(this.about.models[name][label]) };
          this.refuse(what, { model: quoted(name), ...at });
        }
      });
    }
    if (this.about.most_mass === null) return;
    rows.forEach((row, sample) => {
      const sum = row.reduce((total, score) => total + (Number.isNaN(score) ? 0 : score), 0);
      if (mask[sample][place] && sum > this.about.most_mass) {
        this.refuse("mass", { sum: sum.toFixed(4), sample, model: quoted(name) });
      }
    });
  }

  refuse(what, values) {
    const words = this.about.errors[what];
    throw new Error(words.replace(/\{(\w+)\}/g, (_, name) => values[name]));
  }

  tensor(rows) {
    const Numbers = this.about.dtype === "float64" ? Float64Array : Float32Array;
    return new this.ort.Tensor(this.about.dtype, Numbers.from(rows.flat()), [rows.length, rows[0].length]);
  }
}

// What the file says of itself: field 14 of ONNX's ModelProto holds pairs of texts.
export function readAbout(bytes) {
  for (const [field, value] of fields(bytes)) {
    if (field !== 14) continue;
    const pair = new Map(fields(value));
    const text = (part) => new TextDecoder().decode(pair.get(part));
    if (text(1) === KEY) return JSON.parse(text(2));
  }
  return null;
}

// The fields of a message of protocol buffers that have a length, and numbers.
function* fields(bytes) {
  let at = 0;
  const number = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * factor;
      if (byte < 128 || at >= bytes.length) return value;
    }
  };
  while (at < bytes.length) {
    const tag = number();
    const wire = tag % 8;
    if (wire === 0) yield [Math.floor(tag / 8), number()];
    else if (wire === 2) {
      const size = number();
      yield [Math.floor(tag / 8), bytes.subarray(at, (at += size))];
    } else at += wire === 1 ? 8 : 4;
  }
}

function executors(ort) {
  return ort.env?.wasm === undefined || !ort.env.versions?.web ? ["cpu"] : ["wasm"];
}

function unpack(tensor) {
  const numbers = Array.from(tensor.data, Number);
  if (tensor.dims.length === 1) return numbers;
  const [n, width] = tensor.dims;
  return Array.from({ length: n }, (_, row) => numbers.slice(row * width, (row + 1) * width));
}

// The shape of numbers in lists of lists; null where something else is among them.
function shapeOf(rows) {
  if (!isList(rows)) return isNumber(rows) ? [] : null;
  const shapes = Array.from(rows, shapeOf);
  const areAlike = shapes.every((shape) => shape && String(shape) === String(shapes[0]));
  return areAlike ? [rows.length, ...(shapes[0] ?? [])] : null;
}

function numbersOf(rows, round = Number) {
  return rows.map((row) => Array.from(row, (value) => (value === null ? NaN : round(value))));
}

const isList = (value) => Array.isArray(value) || ArrayBuffer.isView(value);
const isNumber = (value) => value === null || ["number", "boolean"].includes(typeof value);

// As Python writes texts in messages.
function quoted(text) {
  const escapes = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };
  const plain = text.replace(/[\\\n\r\t]/g, (found) => escapes[found]);
  return plain.includes("'") && !plain.includes('"') ? `"${plain}"` : `'${plain.replaceAll("'", "\\'")}'`;
}

function listed(names) {
  const shown = names.slice(0, 6).map(quoted).join(", ");
  return names.length > 6 ? `${shown} and ${names.length - 6} more` : shown;
}
