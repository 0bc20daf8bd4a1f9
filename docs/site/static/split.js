// Chinese text has no spaces. The index has pairs of characters; a query is cut into words, and these into pairs.
var splitQuery = (query) => {
  const isChinese = (part) => /[\u3400-\u9fff]/.test(part);
  const words = (part) =>
    isChinese(part) && typeof Intl.Segmenter === "function"
      ? Array.from(new Intl.Segmenter("zh", { granularity: "word" }).segment(part), (each) => each.segment)
      : [part];
  const pairs = (word) =>
    isChinese(word) && word.length > 2
      ? Array.from({ length: word.length - 1 }, (_, i) => word.slice(i, i + 2))
      : [word];
  const found = query
    .split(/[^\p{Letter}\p{Number}_]+/gu)
    .flatMap((part) => part.match(/[\u3400-\u9fff]+|[^\u3400-\u9fff]+/g) || [])
    .flatMap(words);
  const long = found.filter((word) => !isChinese(word) || word.length > 1); // 后, 的 and 了 say little
  return (long.length ? long : found).flatMap(pairs);
};
