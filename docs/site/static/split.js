// Chinese text has no spaces. The index has pairs of characters; a query is cut into words, and these into pairs.
var splitQuery = (query) => {
  const isChinese = (part) => /[\u3400-\u9fff]/.test(part);
  const words = (part) => {
    if (!isChinese(part) || typeof Intl.Segmenter !== "function") return [part];
    const cut = Array.from(new Intl.Segmenter("zh", { granularity: "word" }).segment(part), (each) => each.segment);
    // 主题|数 is one word; a single character elsewhere, such as 后 or 的, says little.
    const ends = cut.length > 1 && cut.at(-1).length === 1 && !"的了吗呢么".includes(cut.at(-1));
    return ends ? [...cut.slice(0, -2), cut.at(-2) + cut.at(-1)] : cut;
  };
  const pairs = (word) =>
    isChinese(word) && word.length > 2
      ? Array.from({ length: word.length - 1 }, (_, i) => word.slice(i, i + 2))
      : [word];
  const found = query
    .split(/[^\p{Letter}\p{Number}_]+/gu)
    .flatMap((part) => part.match(/[\u3400-\u9fff]+|[^\u3400-\u9fff]+/g) || [])
    .flatMap(words);
  const long = found.filter((word) => !isChinese(word) || word.length > 1);
  return (long.length ? long : found).flatMap(pairs);
};
