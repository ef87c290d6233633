// What an explanation (regard/explaining/explanation.schema.json) says of single words.

// The stretches between white space, and where each begins.
export function words(text) {
  return [...text.matchAll(/\S+/gu)].map((found) => ({ text: found[0], start: found.index }));
}

function tokensOf(side, place) {
  return side.tokens.map((token, i) => (token.words.includes(place) ? i : -1)).filter((i) => i >= 0);
}

// How probable the model found a word of its output: the product over the tokens of it.
export function probability(explanation, place) {
  return tokensOf(explanation.target, place).reduce((p, i) => p * explanation.steps[i].probability, 1);
}

// The values of one target word for each source word: the mean over its tokens, the sum over theirs; null where one of
// them is not known.
export function gathered(explanation, place, matrix) {
  const rows = tokensOf(explanation.target, place);
  const found = explanation.source.words.map(() => 0);
  for (const row of rows) {
    explanation.source.tokens.forEach((token, column) => {
      const value = matrix[row][column];
      for (const word of token.words) {
        found[word] = value === null || found[word] === null ? null : found[word] + value / rows.length;
      }
    });
  }
  return found;
}

// Where the heads of a layer looked while the model wrote a word: a share for each source word, which sum to 1; null:
// nothing is known.
export function attention(explanation, place, layer) {
  const found = explanation.source.words.map(() => 0);
  for (const block of explanation.attention.filter((one) => one.kind === "cross" && one.layer === layer)) {
    gathered(explanation, place, block.weights).forEach((value, i) => { found[i] += value; });
  }
  const total = found.reduce((a, b) => a + b, 0);
  return total > 0 ? found.map((value) => value / total) : null;
}

// Of links [source word, target word], the source words of one target word, and the target words that share them.
export function linked(links, place) {
  const sources = new Set(links.filter(([, target]) => target === place).map(([source]) => source));
  return { sources, targets: new Set(links.filter(([source]) => sources.has(source)).map(([, target]) => target)) };
}

// What a word loses on average where a source word is left out, and the standard error of that; null: not measured.
// Errors add up, as in regard/explaining/explain_data.js: all pieces share their masks, so the error is no larger.
export function rise(explanation, place) {
  const map = explanation.saliency?.find((one) => one.method === "rise");
  if (!map) return null;
  const errors = map.errors ? gathered(explanation, place, map.errors) : null;
  return { values: gathered(explanation, place, map.values), errors };
}

// Other tokens that could have stood where a word begins: the output up to and with each of them, and its probability.
export function openings(explanation, place) {
  const [first] = tokensOf(explanation.target, place);
  if (first === undefined) return [];
  const token = explanation.target.tokens[first];
  const before = [...explanation.target.text].slice(0, token.start).join("");
  return explanation.steps[first].alternatives
    .filter((other) => other.id !== token.id && !/^<.*>$/u.test(other.text)) // not an end, a byte or an unknown
    .map((other) => {
      const surface = other.text.replaceAll("▁", " ");
      return { prefix: (before + surface).trim(), text: surface.trim(), probability: other.probability };
    })
    .filter((other) => other.text);
}
